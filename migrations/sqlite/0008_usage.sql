-- What each model call took: one row a call, never changed, kept when its session
-- is deleted. Costs are whole billionths of the configured currency.
create table usage (
    tenant_id text not null,
    usage_id text not null,
    session_id text not null,
    turn_id text not null,
    user_id text not null,
    -- turn, compaction, review, judge, title, vision.
    purpose text not null,
    model text not null,
    input_tokens integer not null,
    cached_input_tokens integer not null,
    output_tokens integer not null,
    reasoning_tokens integer not null,
    cost_nanos integer not null,
    -- The day of UTC in which it was stored.
    day text not null,
    at integer not null,
    primary key (tenant_id, usage_id)
);
create index usage_by_time on usage (tenant_id, at);
create index usage_of_session on usage (tenant_id, session_id, usage_id);

-- What was spent and granted under a subject: a user, the tenant, a day; of a
-- session and a turn only what was granted, for their own rows say what they
-- spent. A sum has several parts, so that sessions do not wait for one another.
create table usage_sum (
    tenant_id text not null,
    subject text not null,
    part integer not null,
    tokens integer not null,
    cost_nanos integer not null,
    granted_tokens integer not null,
    granted_cost_nanos integer not null,
    primary key (tenant_id, subject, part)
);
