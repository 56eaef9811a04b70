-- The API key that a turn was begun with, for limits of what a key may execute
-- at once. Null for tokens and the key of the environment.
alter table turn add column key_id text;
