-- What earlier runs of a template took is looked up by template, newest first. No column of it ever
-- changes, so updates of operations stay off the index.
CREATE INDEX operations_of_template ON operations (organization_id, pack, template, id DESC);
