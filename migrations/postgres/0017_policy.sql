-- What operators add to the guard's rules, by name.
create table policy (
    tenant_id text collate "C" not null,
    name text collate "C" not null,
    body text not null,
    created_at bigint not null,
    updated_at bigint not null,
    updated_by text not null,
    primary key (tenant_id, name)
);

select raise_wall('policy');
