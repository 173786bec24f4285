use database::schema_dump;

use crate::notebook;

const NOTEBOOK_SCHEMA: &str = "\
table notes row-security forced
  column organization_id uuid not null
  column id bigint not null identity always
  column body text not null
  constraint notes_body_check CHECK ((body <> ''::text))
  constraint notes_pkey PRIMARY KEY (organization_id, id)
  index CREATE UNIQUE INDEX notes_pkey ON public.notes USING btree (organization_id, id)
  policy look select to notebook_worker using true
  policy own all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant insert, select to notebook_api
  grant insert, select to notebook_worker
sequence notes_id_seq as bigint start 1 increment 1
";

#[tokio::test]
async fn the_description_names_everything_a_schema_is_made_of_and_nothing_of_the_machine() {
    let test = notebook().await;
    let text = schema_dump(test.open_superuser().sqlx()).await.unwrap();
    assert_eq!(text, NOTEBOOK_SCHEMA);
}

#[tokio::test]
async fn two_databases_of_the_same_migrations_read_the_same_and_a_change_shows() {
    let (one, two) = (notebook().await, notebook().await);
    let (one, two) = (one.open_superuser(), two.open_superuser());
    let before = schema_dump(one.sqlx()).await.unwrap();
    assert_eq!(before, schema_dump(two.sqlx()).await.unwrap());
    let changes = [
        "ALTER TABLE notes ADD COLUMN mood text COLLATE \"C\" DEFAULT 'calm'",
        "CREATE INDEX notes_body ON notes (lower(body)) WHERE body <> 'x'",
        "GRANT UPDATE (body) ON notes TO notebook_worker",
        "ALTER TABLE notes NO FORCE ROW LEVEL SECURITY",
        "CREATE FUNCTION answer() RETURNS int LANGUAGE sql AS 'SELECT 42'",
        "CREATE VIEW loud AS SELECT upper(body) AS body FROM notes",
        "CREATE TYPE colour AS ENUM ('red', 'blue')",
        "CREATE TABLE log (at date NOT NULL) PARTITION BY RANGE (at)",
    ];
    let mut seen = vec![before];
    for change in changes {
        sqlx::raw_sql(change).execute(one.sqlx()).await.unwrap();
        let now = schema_dump(one.sqlx()).await.unwrap();
        assert!(!seen.contains(&now), "{change} must show");
        seen.push(now);
    }
}
