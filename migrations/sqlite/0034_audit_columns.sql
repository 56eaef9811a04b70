-- The triggers of this database tell by columns already whether an entry stays what
-- it is.
select 1;
