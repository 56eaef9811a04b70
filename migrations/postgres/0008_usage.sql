-- What each model call took: one row a call, never changed, kept when its session
-- is deleted. Costs are whole billionths of the configured currency.
create table usage (
    tenant_id text collate "C" not null,
    usage_id text collate "C" not null,
    session_id text collate "C" not null,
    turn_id text collate "C" not null,
    user_id text collate "C" not null,
    -- turn, compaction, review, judge, title, vision.
    purpose text collate "C" not null,
    model text collate "C" not null,
    input_tokens bigint not null,
    cached_input_tokens bigint not null,
    output_tokens bigint not null,
    reasoning_tokens bigint not null,
    cost_nanos bigint not null,
    -- The day of UTC in which it was stored.
    day text collate "C" not null,
    at bigint not null,
    primary key (tenant_id, usage_id)
);
create index usage_by_time on usage (tenant_id, at);
create index usage_of_session on usage (tenant_id, session_id, usage_id);

-- What was spent and granted under a subject: a user, the tenant, a day; of a
-- session and a turn only what was granted, for their own rows say what they
-- spent. A sum has several parts, so that sessions do not wait for one another.
create table usage_sum (
    tenant_id text collate "C" not null,
    subject text collate "C" not null,
    part bigint not null,
    tokens bigint not null,
    cost_nanos bigint not null,
    granted_tokens bigint not null,
    granted_cost_nanos bigint not null,
    primary key (tenant_id, subject, part)
);

select raise_wall('usage');
select raise_wall('usage_sum');
