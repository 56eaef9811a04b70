-- Whose work a session does, as JSON; null where it is its user's own.
alter table session add column lineage text;
-- The session at the root of that work.
alter table session add column root_session_id text collate "C";
-- The call that made the session.
alter table session add column delegated_by text collate "C";
create index session_of_root on session (tenant_id, root_session_id) where root_session_id is not null;
create index session_of_call on session (tenant_id, delegated_by) where delegated_by is not null;

-- Where delegated work asks: who waits for the answer. The approval is the root's.
alter table approval add column origin_session_id text collate "C";
alter table approval add column origin_turn_id text collate "C";
create index approval_of_origin on approval (tenant_id, origin_turn_id) where origin_turn_id is not null;
