-- What waits for a person, however much was decided before.
create index approval_pending on approval (tenant_id, approval_id) where status = 'pending';

-- The first event that is kept of a session's log; those before it are folded.
alter table session add column oldest_seq bigint not null default 1;
