-- The second wall between tenants. Every table with a `tenant_id` shows and
-- takes only the rows of the tenant that the transaction named, whatever its
-- queries say. Code that works across tenants has to say so.

-- A role without login, without table ownership and without privileges to pass
-- row-level security: transactions take it, so that the walls bind even when
-- the database user is a superuser. A user who may not make roles goes without;
-- the walls are forced and bind an ordinary user by themselves.
do $$
begin
    if not exists (select from pg_roles where rolname = 'hermes_app') then
        create role hermes_app nologin;
    end if;
exception
    -- Another database of the same server made it at the same time.
    when duplicate_object or unique_violation or insufficient_privilege then null;
end
$$;

do $$
begin
    if not exists (select from pg_roles where rolname = 'hermes_app') then
        return;
    end if;
    begin
        if not pg_has_role(current_user, 'hermes_app', 'member') then
            execute format('grant hermes_app to %I', current_user);
        end if;
    exception
        when insufficient_privilege then null;
    end;
    execute format('grant usage on schema %I to hermes_app', current_schema());
    execute format('grant select, insert, update, delete on all tables in schema %I to hermes_app', current_schema());
    execute format('alter default privileges in schema %I grant select, insert, update, delete on tables to hermes_app', current_schema());
    revoke all on _sqlx_migrations from hermes_app;
end
$$;

-- For the tables of later migrations too: `select raise_wall('name')`.
create function raise_wall(walled text) returns void language plpgsql as $$
begin
    execute format('alter table %I enable row level security', walled);
    execute format('alter table %I force row level security', walled);
    execute format('create policy tenant_wall on %I using (tenant_id = current_setting(''app.tenant'', true))', walled);
    execute format('create policy across_tenants on %I using (current_setting(''app.across'', true) = ''on'')', walled);
end
$$;

select raise_wall('tenant');
select raise_wall('api_key');
select raise_wall('session');
select raise_wall('turn');
select raise_wall('message');
select raise_wall('tool_call');
select raise_wall('approval');
select raise_wall('standing_grant');
select raise_wall('event');
