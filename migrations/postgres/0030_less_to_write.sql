-- Events of a turn stand between its first and its last number: no event needs a
-- second entry for that.
drop index event_of_turn;

-- Whether an entry stays what it is is told by the columns that a statement names,
-- not by comparing whole rows as JSON: that took longer than all else of chaining.
drop trigger audit_entry_stays on audit_entry;
drop trigger audit_entry_is_not_emptied on audit_entry;
drop function audit_entry_stays();

create function audit_entry_stays() returns trigger language plpgsql as $$
begin
    raise exception 'audit entries are never %', case tg_op when 'UPDATE' then 'changed' else 'deleted' end;
end
$$;
create trigger audit_entry_stays before delete on audit_entry
    for each row execute function audit_entry_stays();
create trigger audit_entry_is_not_emptied before truncate on audit_entry
    for each statement execute function audit_entry_stays();
create trigger audit_entry_does_not_change before update of tenant_id, audit_id, at, action, actor, key_id, user_id,
        session_id, turn_id, call_id, approval_id, grant_id, target_key_id, tool, rules, verdict, decision, outcome,
        exit_code, fields on audit_entry
    for each row execute function audit_entry_stays();
-- Its place it gets once.
create trigger audit_entry_is_chained_once before update on audit_entry
    for each row when (old.chain_seq is not null or new.chain_seq is null) execute function audit_entry_stays();
