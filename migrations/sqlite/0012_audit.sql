-- The audit trail: only ever appended to. Of a row nothing changes but its place
-- in the chain, once.
create table audit_entry (
    tenant_id text not null,
    audit_id text not null,
    at integer not null,
    action text not null,
    actor text not null,
    key_id text,
    user_id text not null,
    session_id text,
    turn_id text,
    call_id text,
    approval_id text,
    grant_id text,
    target_key_id text,
    tool text,
    rules text not null,
    verdict text,
    decision text,
    outcome text,
    exit_code integer,
    fields text not null,
    -- Null until the row is chained.
    chain_seq integer,
    prev_hash text,
    hash text,
    primary key (tenant_id, audit_id)
);
-- One chain, without forks.
create unique index audit_entry_chain on audit_entry (tenant_id, chain_seq) where chain_seq is not null;
create index audit_entry_unchained on audit_entry (audit_id) where chain_seq is null;
create index audit_entry_of_session on audit_entry (tenant_id, session_id, audit_id) where session_id is not null;

create trigger audit_entry_stays before delete on audit_entry begin
    select raise(abort, 'audit entries are never deleted');
end;
create trigger audit_entry_is_not_replaced before insert on audit_entry
    when exists (select 1 from audit_entry where tenant_id = new.tenant_id and audit_id = new.audit_id) begin
    select raise(abort, 'audit entries are never changed');
end;
create trigger audit_entry_does_not_change before update on audit_entry
    when old.chain_seq is not null or new.chain_seq is null
        or new.tenant_id is not old.tenant_id or new.audit_id is not old.audit_id or new.at is not old.at
        or new.action is not old.action or new.actor is not old.actor or new.key_id is not old.key_id
        or new.user_id is not old.user_id or new.session_id is not old.session_id
        or new.turn_id is not old.turn_id or new.call_id is not old.call_id
        or new.approval_id is not old.approval_id or new.grant_id is not old.grant_id
        or new.target_key_id is not old.target_key_id or new.tool is not old.tool or new.rules is not old.rules
        or new.verdict is not old.verdict or new.decision is not old.decision or new.outcome is not old.outcome
        or new.exit_code is not old.exit_code or new.fields is not old.fields begin
    select raise(abort, 'audit entries are never changed');
end;

-- Work that one process does at a time.
create table task_lease (
    name text primary key not null,
    holder text not null,
    expires_at integer not null
);
