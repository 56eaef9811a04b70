-- The audit trail: only ever appended to. Of a row nothing changes but its place
-- in the chain, once.
create table audit_entry (
    tenant_id text collate "C" not null,
    audit_id text collate "C" not null,
    at bigint not null,
    action text not null,
    actor text not null,
    key_id text collate "C",
    user_id text not null,
    session_id text collate "C",
    turn_id text collate "C",
    call_id text collate "C",
    approval_id text collate "C",
    grant_id text collate "C",
    target_key_id text collate "C",
    tool text,
    rules text not null,
    verdict text,
    decision text,
    outcome text,
    exit_code bigint,
    fields text not null,
    -- Null until the row is chained.
    chain_seq bigint,
    prev_hash text,
    hash text,
    primary key (tenant_id, audit_id)
);
-- One chain, without forks.
create unique index audit_entry_chain on audit_entry (tenant_id, chain_seq) where chain_seq is not null;
create index audit_entry_unchained on audit_entry (audit_id) where chain_seq is null;
create index audit_entry_of_session on audit_entry (tenant_id, session_id, audit_id) where session_id is not null;

create function audit_entry_stays() returns trigger language plpgsql as $$
begin
    if tg_op = 'UPDATE' then
        if old.chain_seq is null and new.chain_seq is not null
            and to_jsonb(new) - 'chain_seq' - 'prev_hash' - 'hash' = to_jsonb(old) - 'chain_seq' - 'prev_hash' - 'hash'
        then
            return new;
        end if;
        raise exception 'audit entries are never changed';
    end if;
    raise exception 'audit entries are never deleted';
end
$$;
create trigger audit_entry_stays before update or delete on audit_entry
    for each row execute function audit_entry_stays();
create trigger audit_entry_is_not_emptied before truncate on audit_entry
    for each statement execute function audit_entry_stays();

-- Work that one process does at a time.
create table task_lease (
    name text collate "C" primary key,
    holder text not null,
    expires_at bigint not null
);

select raise_wall('audit_entry');
