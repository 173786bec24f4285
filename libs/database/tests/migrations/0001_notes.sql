CREATE TABLE notes (
    organization_id uuid NOT NULL,
    id bigint GENERATED ALWAYS AS IDENTITY,
    body text NOT NULL CHECK (body <> ''),
    PRIMARY KEY (organization_id, id)
);
ALTER TABLE notes ENABLE ROW LEVEL SECURITY;
ALTER TABLE notes FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON notes USING (organization_id = current_setting('app.organization_id', true)::uuid);
CREATE POLICY look ON notes FOR SELECT TO notebook_worker USING (true);
GRANT SELECT, INSERT ON notes TO notebook_api, notebook_worker;
