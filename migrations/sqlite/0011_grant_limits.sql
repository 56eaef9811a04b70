-- What a grant is held to beside its keys, and what ran under it.
alter table standing_grant add column arguments text not null default '{}';
alter table standing_grant add column paths text not null default '[]';
alter table standing_grant add column max_uses integer;
alter table standing_grant add column expires_at integer;

create table grant_use (
    tenant_id text not null,
    grant_id text not null,
    call_id text not null,
    session_id text not null,
    turn_id text not null,
    user_id text not null,
    tool text not null,
    used_at integer not null,
    primary key (tenant_id, grant_id, call_id)
);
create index grant_use_of_session on grant_use (tenant_id, session_id);
