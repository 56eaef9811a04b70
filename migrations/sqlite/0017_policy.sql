-- What operators add to the guard's rules, by name.
create table policy (
    tenant_id text not null,
    name text not null,
    body text not null,
    created_at integer not null,
    updated_at integer not null,
    updated_by text not null,
    primary key (tenant_id, name)
);
