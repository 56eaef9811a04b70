-- Messages for a turn that runs, which the model has not read yet: a list of
-- what each becomes if the turn ends first.
alter table turn add column steers text not null default '[]';
-- Whether a user's message came while its turn ran.
alter table message add column steered integer not null default 0;
