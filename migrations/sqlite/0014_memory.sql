-- What is remembered of a user from session to session, one row a list; entries
-- are a JSON array of texts.
create table memory (
    tenant_id text not null,
    user_id text not null,
    -- memory, user.
    target text not null,
    entries text not null,
    updated_at integer not null,
    primary key (tenant_id, user_id, target)
);

-- The block of memory that a session's prompt begins with, as of its first turn.
alter table session add column memory_block text;
