-- What became of the answer of a run that is to be told to another session.
alter table job_run add column delivery text;
create index job_run_undelivered on job_run (tenant_id, run_id) where delivery = 'pending';
