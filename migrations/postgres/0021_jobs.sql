-- Jobs: what they are is JSON; when they are due is found without reading it.
create table job (
    tenant_id text collate "C" not null,
    job_id text collate "C" not null,
    user_id text collate "C" not null,
    state text not null,
    due_at bigint,
    data text not null,
    primary key (tenant_id, job_id)
);
create index job_of_user on job (tenant_id, user_id, job_id);
create index job_due on job (due_at) where due_at is not null;

-- Their runs. What became of one its turn says; a run without a turn says why.
create table job_run (
    tenant_id text collate "C" not null,
    job_id text collate "C" not null,
    run_id text collate "C" not null,
    user_id text collate "C" not null,
    due_at bigint not null,
    triggered bigint not null,
    outcome text,
    session_id text collate "C",
    turn_id text collate "C",
    started_at bigint not null,
    primary key (tenant_id, run_id)
);
create index job_run_of_job on job_run (tenant_id, job_id, run_id);

select raise_wall('job');
select raise_wall('job_run');
