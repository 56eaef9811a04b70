-- What an agent wants to write for good, until a person lets it in or not.
create table pending_write (
    tenant_id text not null,
    pending_id text not null,
    user_id text not null,
    -- skill, memory.
    kind text not null,
    data text not null,
    primary key (tenant_id, pending_id)
);
create index pending_write_of_user on pending_write (tenant_id, user_id, pending_id);
