-- What the model was shown of files, as JSON: a read that would show the same
-- again is answered in a word, and a write over what changed since is warned of.
alter table session add column seen_files text not null default '';
