CREATE TABLE notes (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    body text NOT NULL,
    version bigint NOT NULL DEFAULT 1,
    PRIMARY KEY (organization_id, id)
);
ALTER TABLE notes ENABLE ROW LEVEL SECURITY;
ALTER TABLE notes FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON notes USING (organization_id = current_setting('app.organization_id', true)::uuid);
GRANT SELECT, INSERT, UPDATE, DELETE ON notes TO notes_api;
