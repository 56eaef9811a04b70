-- What waits for a person, however much was decided before.
create index approval_pending on approval (tenant_id, approval_id) where status = 'pending';
