-- How the model answers where a turn says nothing else.
alter table session add column sampling text not null default '{}';
-- The last message that a fork took over from `parent_session_id`.
alter table session add column parent_message_id text;

-- What is found by its words: one row for a title (place -1) and for each
-- message with words of a person or the model, in the form in which they are
-- compared.
create table search_entry (
    entry_id integer primary key,
    tenant_id text not null,
    session_id text not null,
    user_id text not null,
    position integer not null,
    body text not null
);
create unique index search_entry_place on search_entry (tenant_id, session_id, position);

-- Which entries hold three characters in a row. Texts are compared as they are:
-- they were folded before they came here.
create virtual table search_trigram using fts5 (
    body, content = 'search_entry', content_rowid = 'entry_id',
    tokenize = 'trigram case_sensitive 1', detail = 'none', columnsize = 0
);
create trigger search_entry_added after insert on search_entry begin
    insert into search_trigram (rowid, body) values (new.entry_id, new.body);
end;
create trigger search_entry_gone after delete on search_entry begin
    insert into search_trigram (search_trigram, rowid, body) values ('delete', old.entry_id, old.body);
end;
create trigger search_entry_changed after update of body on search_entry begin
    insert into search_trigram (search_trigram, rowid, body) values ('delete', old.entry_id, old.body);
    insert into search_trigram (rowid, body) values (new.entry_id, new.body);
end;

-- What is there already, folded as well as the database can.
insert into search_entry (tenant_id, session_id, user_id, position, body)
select tenant_id, session_id, user_id, -1, lower(title) from session where title is not null and title <> '';
insert into search_entry (tenant_id, session_id, user_id, position, body)
select tenant_id, session_id, user_id, position, substr(lower(said), 1, 65536)
from (
    select tenant_id, session_id, user_id, position, (
        select group_concat(value ->> '$.text', ' ') from json_each(content) where value ->> '$.type' = 'text') as said
    from message where role in ('user', 'assistant'))
where said is not null and said <> '';
