-- What an agent wants to write for good, until a person lets it in or not.
create table pending_write (
    tenant_id text collate "C" not null,
    pending_id text collate "C" not null,
    user_id text collate "C" not null,
    -- skill, memory.
    kind text collate "C" not null,
    data text not null,
    primary key (tenant_id, pending_id)
);
create index pending_write_of_user on pending_write (tenant_id, user_id, pending_id);

select raise_wall('pending_write');
