table attempts row-security forced with fillfactor=70
  column id uuid not null
  column operation_id uuid not null
  column organization_id uuid not null
  column node text not null
  column run integer not null
  column number integer not null
  column state text not null
  column body json not null
  constraint attempts_pkey PRIMARY KEY (id)
  index CREATE INDEX attempts_of_operation ON public.attempts USING btree (operation_id, node, run, number)
  index CREATE UNIQUE INDEX attempts_pkey ON public.attempts USING btree (id)
  policy organization all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant delete, insert, select, update to control_plane_api
  grant delete, insert, select, update to control_plane_worker

table audit row-security forced
  column id uuid not null
  column organization_id uuid not null
  column at timestamp with time zone not null default now()
  column actor text not null
  column action text not null
  column subject text not null
  column allowed boolean not null
  column result text not null
  column reason text not null
  column detail json not null
  column remote_address text not null default ''::text
  constraint audit_pkey PRIMARY KEY (id)
  index CREATE INDEX audit_in_order ON public.audit USING btree (organization_id, id)
  index CREATE UNIQUE INDEX audit_pkey ON public.audit USING btree (id)
  policy carry select to control_plane_worker using true
  policy organization all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant insert, select to control_plane_api
  grant insert, select to control_plane_worker
  trigger CREATE TRIGGER audit_await_chain AFTER INSERT ON public.audit REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION audit_await_chain()

table audit_chain row-security forced
  column organization_id uuid not null
  column sequence bigint not null
  column fact_id uuid not null
  column chained_at timestamp with time zone not null
  column previous_hash bytea
  column hash bytea not null
  constraint audit_chain_check CHECK (((previous_hash IS NULL) = (sequence = 1)))
  constraint audit_chain_hash_check CHECK ((octet_length(hash) = 32))
  constraint audit_chain_once UNIQUE (organization_id, fact_id)
  constraint audit_chain_pkey PRIMARY KEY (organization_id, sequence)
  constraint audit_chain_sequence_check CHECK ((sequence > 0))
  index CREATE UNIQUE INDEX audit_chain_once ON public.audit_chain USING btree (organization_id, fact_id)
  index CREATE UNIQUE INDEX audit_chain_pkey ON public.audit_chain USING btree (organization_id, sequence)
  policy carry all to control_plane_worker using true
  policy organization all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant select to control_plane_api
  grant insert, select to control_plane_worker

table audit_heads row-security forced
  column organization_id uuid not null
  column sequence bigint not null
  column hash bytea not null
  constraint audit_heads_pkey PRIMARY KEY (organization_id)
  index CREATE UNIQUE INDEX audit_heads_pkey ON public.audit_heads USING btree (organization_id)
  policy carry all to control_plane_worker using true
  policy organization all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant select to control_plane_api
  grant insert, select, update to control_plane_worker

table audit_unchained row-security forced
  column position bigint not null identity always
  column organization_id uuid not null
  column fact_id uuid not null
  constraint audit_unchained_pkey PRIMARY KEY ("position")
  index CREATE UNIQUE INDEX audit_unchained_pkey ON public.audit_unchained USING btree ("position")
  policy carry all to control_plane_worker using true
  policy organization all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant select to control_plane_api
  grant delete, select to control_plane_worker

table claims row-security forced
  column request_id uuid not null
  column uid uuid not null
  column organization_id uuid not null
  column operation_id uuid not null
  column run integer not null
  column resource_id text not null
  column mode text not null
  column held boolean not null
  column ticket bigint not null
  column since timestamp with time zone not null
  constraint claims_mode_check CHECK ((mode = ANY (ARRAY['exclusive'::text, 'shared'::text, 'read'::text])))
  constraint claims_pkey PRIMARY KEY (request_id, uid)
  index CREATE INDEX claims_of_operation ON public.claims USING btree (operation_id)
  index CREATE INDEX claims_of_resource ON public.claims USING btree (uid, ticket)
  index CREATE UNIQUE INDEX claims_pkey ON public.claims USING btree (request_id, uid)
  policy organization all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant delete, insert, select, update to control_plane_api
  grant delete, insert, select, update to control_plane_worker

table content_deliveries row-security forced
  column organization_id uuid not null
  column sha256 bytea not null
  column pack text not null
  column pack_version text not null
  column due_at timestamp with time zone default now()
  column tries integer not null default 0
  column delivered_at timestamp with time zone
  column last_error text
  constraint content_deliveries_organization_id_pack_pack_version_fkey FOREIGN KEY (organization_id, pack, pack_version) REFERENCES packs(organization_id, name, version)
  constraint content_deliveries_pkey PRIMARY KEY (organization_id, sha256)
  constraint content_deliveries_sha256_check CHECK ((octet_length(sha256) = 32))
  index CREATE INDEX content_deliveries_due ON public.content_deliveries USING btree (due_at) WHERE (delivered_at IS NULL)
  index CREATE UNIQUE INDEX content_deliveries_pkey ON public.content_deliveries USING btree (organization_id, sha256)
  policy figures select to control_plane_owner using true
  policy organization all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  policy worker all to control_plane_worker using true
  grant delete, insert, select, update to control_plane_api
  grant delete, insert, select, update to control_plane_worker

table effects row-security forced with fillfactor=70
  column id uuid not null
  column organization_id uuid not null
  column operation_id uuid not null
  column subject uuid not null
  column dependency text not null
  column body json not null
  column created_at timestamp with time zone not null default now()
  column retry_at timestamp with time zone not null
  column tries integer not null default 0
  column failing_since timestamp with time zone
  column last_error text
  constraint effects_pkey PRIMARY KEY (id)
  index CREATE INDEX effects_of_operation ON public.effects USING btree (operation_id, id)
  index CREATE INDEX effects_overdue ON public.effects USING btree (retry_at)
  index CREATE UNIQUE INDEX effects_pkey ON public.effects USING btree (id)
  policy figures select to control_plane_owner using true
  policy organization all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  policy worker all to control_plane_worker using true
  grant delete, insert, select, update to control_plane_api
  grant delete, insert, select, update to control_plane_worker

table feed partition by RANGE (revision) row-security forced
  column revision bigint not null
  column organization_id uuid not null
  column key text not null
  column version bigint not null
  column kind text not null
  column event_id uuid not null
  column payload text not null
  column occurred_at timestamp with time zone not null
  column traceparent text
  column sequenced_at timestamp with time zone not null default now()
  constraint feed_payload_is_json CHECK (((payload)::json IS NOT NULL))
  constraint feed_payload_size CHECK ((octet_length(payload) <= 786432))
  constraint feed_pkey PRIMARY KEY (revision)
  index CREATE INDEX feed_organization_revision ON ONLY public.feed USING btree (organization_id, revision)
  index CREATE UNIQUE INDEX feed_pkey ON ONLY public.feed USING btree (revision)
  policy carry all to control_plane_worker using true
  policy own all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant select to control_plane_api
  grant insert, select to control_plane_worker

table feed_consumers
  column name text not null
  column acknowledged bigint not null
  column acknowledged_at timestamp with time zone not null default now()
  constraint feed_consumers_pkey PRIMARY KEY (name)
  index CREATE UNIQUE INDEX feed_consumers_pkey ON public.feed_consumers USING btree (name)
  grant insert, select, update to control_plane_api
  grant delete, insert, select, update to control_plane_worker

table feed_partitions
  column first bigint not null
  column next bigint not null
  column filled_at timestamp with time zone
  constraint feed_partitions_check CHECK ((next > first))
  constraint feed_partitions_next_key UNIQUE (next)
  constraint feed_partitions_pkey PRIMARY KEY (first)
  index CREATE UNIQUE INDEX feed_partitions_next_key ON public.feed_partitions USING btree (next)
  index CREATE UNIQUE INDEX feed_partitions_pkey ON public.feed_partitions USING btree (first)
  grant select to control_plane_worker

table feed_state
  column one_row boolean not null default true
  column head bigint not null default 0
  column floor bigint not null default 0
  column epoch bigint not null default 0
  column partition_rows bigint not null default 262144
  constraint feed_state_check CHECK ((floor <= head))
  constraint feed_state_one_row_check CHECK (one_row)
  constraint feed_state_partition_rows_check CHECK ((partition_rows > 0))
  constraint feed_state_pkey PRIMARY KEY (one_row)
  index CREATE UNIQUE INDEX feed_state_pkey ON public.feed_state USING btree (one_row)
  grant select to control_plane_api
  grant select, update to control_plane_worker

table gates row-security forced
  column id uuid not null
  column operation_id uuid not null
  column organization_id uuid not null
  column node text not null
  column state text not null
  column opened_at timestamp with time zone not null
  column body json not null
  constraint gates_operation_id_fkey FOREIGN KEY (operation_id) REFERENCES operations(id)
  constraint gates_pkey PRIMARY KEY (id)
  index CREATE INDEX gates_of_operation ON public.gates USING btree (operation_id, opened_at)
  index CREATE UNIQUE INDEX gates_pkey ON public.gates USING btree (id)
  policy organization all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant delete, insert, select, update to control_plane_api
  grant delete, insert, select, update to control_plane_worker

table idempotency_keys row-security forced
  column organization_id uuid not null
  column operation text not null
  column key text not null
  column request_digest bytea not null
  column status smallint
  column body text not null default ''::text
  column version bigint
  column location text
  column created_at timestamp with time zone not null default now()
  constraint idempotency_keys_pkey PRIMARY KEY (organization_id, operation, key)
  index CREATE INDEX idempotency_keys_created_at ON public.idempotency_keys USING btree (created_at)
  index CREATE UNIQUE INDEX idempotency_keys_pkey ON public.idempotency_keys USING btree (organization_id, operation, key)
  policy look_old select to control_plane_worker using (created_at < (now() - '7 days'::interval))
  policy own all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  policy reap_old delete to control_plane_worker using (created_at < (now() - '7 days'::interval))
  grant insert, select, update to control_plane_api
  grant delete, insert, select, update to control_plane_worker

table inbox row-security forced
  column id bigint not null identity always
  column organization_id uuid not null
  column operation_id uuid not null
  column body json not null
  column told_at timestamp with time zone not null default now()
  constraint inbox_pkey PRIMARY KEY (id)
  index CREATE INDEX inbox_of_operation ON public.inbox USING btree (operation_id, id)
  index CREATE UNIQUE INDEX inbox_pkey ON public.inbox USING btree (id)
  policy figures select to control_plane_owner using true
  policy organization all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  policy worker all to control_plane_worker using true
  grant delete, insert, select, update to control_plane_api
  grant delete, insert, select, update to control_plane_worker

table interventions row-security forced
  column operation_id uuid not null
  column id uuid not null
  column organization_id uuid not null
  column at timestamp with time zone not null
  column request_digest bytea not null
  column body json not null
  constraint interventions_operation_id_fkey FOREIGN KEY (operation_id) REFERENCES operations(id)
  constraint interventions_pkey PRIMARY KEY (operation_id, id)
  index CREATE UNIQUE INDEX interventions_pkey ON public.interventions USING btree (operation_id, id)
  policy organization all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant delete, insert, select, update to control_plane_api
  grant delete, insert, select, update to control_plane_worker

table node_runs row-security forced with fillfactor=70
  column operation_id uuid not null
  column run integer not null
  column node text not null
  column organization_id uuid not null
  column state text not null
  column body json not null
  constraint node_runs_pkey PRIMARY KEY (operation_id, node, run)
  index CREATE UNIQUE INDEX node_runs_pkey ON public.node_runs USING btree (operation_id, node, run)
  policy organization all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant delete, insert, select, update to control_plane_api
  grant delete, insert, select, update to control_plane_worker

table operation_bindings row-security forced
  column operation_id uuid not null
  column slot text not null
  column uid uuid not null
  column organization_id uuid not null
  column body json not null
  constraint operation_bindings_pkey PRIMARY KEY (operation_id, slot, uid)
  index CREATE UNIQUE INDEX operation_bindings_pkey ON public.operation_bindings USING btree (operation_id, slot, uid)
  policy organization all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant delete, insert, select, update to control_plane_api
  grant delete, insert, select, update to control_plane_worker

table operation_events row-security forced
  column operation_id uuid not null
  column sequence bigint not null
  column organization_id uuid not null
  column at timestamp with time zone not null
  column type text not null
  column body json not null
  constraint operation_events_pkey PRIMARY KEY (operation_id, sequence)
  index CREATE UNIQUE INDEX operation_events_pkey ON public.operation_events USING btree (operation_id, sequence)
  policy organization all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant delete, insert, select, update to control_plane_api
  grant delete, insert, select, update to control_plane_worker

table operation_runs row-security forced
  column operation_id uuid not null
  column number integer not null
  column organization_id uuid not null
  column body json not null
  constraint operation_runs_operation_id_fkey FOREIGN KEY (operation_id) REFERENCES operations(id)
  constraint operation_runs_pkey PRIMARY KEY (operation_id, number)
  index CREATE UNIQUE INDEX operation_runs_pkey ON public.operation_runs USING btree (operation_id, number)
  policy organization all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant delete, insert, select, update to control_plane_api
  grant delete, insert, select, update to control_plane_worker

table operations row-security forced with fillfactor=60
  column id uuid not null
  column organization_id uuid not null
  column plan_id uuid not null
  column pack text not null
  column pack_version text not null
  column template text not null
  column environment text not null
  column requester text not null
  column reason text not null
  column labels jsonb not null
  column status text not null
  column run integer not null
  column plan_revision integer not null
  column revision bigint not null
  column last_event bigint not null
  column last_event_at timestamp with time zone not null
  column progress json not null
  column created_at timestamp with time zone not null
  column ended_at timestamp with time zone
  constraint operations_pkey PRIMARY KEY (id)
  constraint operations_plan_carried_out_once UNIQUE (organization_id, plan_id)
  index CREATE INDEX operations_newest ON public.operations USING btree (organization_id, id DESC)
  index CREATE INDEX operations_of_template ON public.operations USING btree (organization_id, pack, template, id DESC)
  index CREATE INDEX operations_open ON public.operations USING btree (organization_id) WHERE (ended_at IS NULL)
  index CREATE UNIQUE INDEX operations_pkey ON public.operations USING btree (id)
  index CREATE UNIQUE INDEX operations_plan_carried_out_once ON public.operations USING btree (organization_id, plan_id)
  policy figures select to control_plane_owner using true
  policy organization all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant delete, insert, select, update to control_plane_api
  grant delete, insert, select, update to control_plane_worker

table outbox row-security forced
  column id bigint not null identity always
  column organization_id uuid not null
  column key text not null
  column version bigint not null
  column kind text not null
  column event_id uuid not null
  column payload text not null
  column occurred_at timestamp with time zone not null
  column traceparent text
  constraint outbox_pkey PRIMARY KEY (id)
  index CREATE UNIQUE INDEX outbox_pkey ON public.outbox USING btree (id)
  policy carry all to control_plane_worker using true
  policy own all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant insert to control_plane_api
  grant delete, insert, select to control_plane_worker

table outbox_parked row-security forced
  column id bigint not null
  column organization_id uuid not null
  column key text not null
  column version bigint not null
  column kind text not null
  column event_id uuid not null
  column payload text not null
  column occurred_at timestamp with time zone not null
  column traceparent text
  column parked_at timestamp with time zone not null default now()
  column reason text not null
  constraint outbox_parked_pkey PRIMARY KEY (id)
  index CREATE UNIQUE INDEX outbox_parked_pkey ON public.outbox_parked USING btree (id)
  policy carry all to control_plane_worker using true
  policy own all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant delete, insert, select to control_plane_worker

table packs row-security forced
  column organization_id uuid not null
  column name text not null
  column version text not null
  column digest bytea not null
  column content_digest bytea
  column description text not null
  column templates text[] not null
  column archive bytea not null
  column published_at timestamp with time zone not null default now()
  column published_by text not null
  constraint packs_content_digest_check CHECK ((octet_length(content_digest) = 32))
  constraint packs_digest_check CHECK ((octet_length(digest) = 32))
  constraint packs_version_once PRIMARY KEY (organization_id, name, version)
  index CREATE UNIQUE INDEX packs_version_once ON public.packs USING btree (organization_id, name, version)
  policy organization all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant delete, insert, select, update to control_plane_api
  grant delete, insert, select, update to control_plane_worker

table parked_resources row-security forced
  column organization_id uuid not null
  column resource_id text not null
  column revision bigint not null
  column problem text not null
  column fact text not null
  column since timestamp with time zone not null default now()
  constraint parked_resources_pkey PRIMARY KEY (organization_id, resource_id)
  index CREATE UNIQUE INDEX parked_resources_pkey ON public.parked_resources USING btree (organization_id, resource_id)
  policy figures select to control_plane_owner using true
  policy organization all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant delete, insert, select, update to control_plane_api
  grant delete, insert, select, update to control_plane_worker

table plan_revisions row-security forced
  column operation_id uuid not null
  column revision integer not null
  column organization_id uuid not null
  column plan_id uuid not null
  column digest bytea not null
  column scenario json not null
  column document bytea not null
  constraint plan_revisions_digest_check CHECK ((octet_length(digest) = 32))
  constraint plan_revisions_operation_id_fkey FOREIGN KEY (operation_id) REFERENCES operations(id)
  constraint plan_revisions_pkey PRIMARY KEY (operation_id, revision)
  index CREATE UNIQUE INDEX plan_revisions_pkey ON public.plan_revisions USING btree (operation_id, revision)
  policy organization all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant delete, insert, select, update to control_plane_api
  grant delete, insert, select, update to control_plane_worker

table plans row-security forced
  column id uuid not null
  column organization_id uuid not null
  column pack text not null
  column pack_version text not null
  column template text not null
  column environment text not null
  column digest bytea
  column document bytea
  column advice json not null
  column created_at timestamp with time zone not null default now()
  column created_by text not null
  constraint plans_digest_check CHECK ((octet_length(digest) = 32))
  constraint plans_digest_with_document CHECK (((digest IS NULL) = (document IS NULL)))
  constraint plans_pkey PRIMARY KEY (id)
  index CREATE INDEX plans_newest ON public.plans USING btree (organization_id, id DESC)
  index CREATE UNIQUE INDEX plans_pkey ON public.plans USING btree (id)
  policy organization all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant delete, insert, select, update to control_plane_api
  grant delete, insert, select, update to control_plane_worker

table projected_edges row-security forced
  column organization_id uuid not null
  column source text not null
  column edge_type text not null
  column target text not null
  constraint projected_edges_pkey PRIMARY KEY (organization_id, source, edge_type, target)
  index CREATE UNIQUE INDEX projected_edges_pkey ON public.projected_edges USING btree (organization_id, source, edge_type, target)
  index CREATE INDEX projected_edges_target ON public.projected_edges USING btree (organization_id, target, edge_type)
  policy organization all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant delete, insert, select, update to control_plane_api
  grant delete, insert, select, update to control_plane_worker

table projected_resources row-security forced with fillfactor=80
  column organization_id uuid not null
  column resource_id text not null
  column uid uuid not null
  column version bigint not null
  column generation integer not null
  column deleted boolean not null
  column resource_type text not null
  column types text[] not null
  column environment text
  column lifecycle text not null
  column health text not null
  column capabilities text[] not null
  column reachable boolean not null
  column body json not null
  constraint projected_resources_pkey PRIMARY KEY (organization_id, resource_id)
  index CREATE INDEX projected_resources_environment ON public.projected_resources USING btree (organization_id, environment, resource_id) WHERE (NOT deleted)
  index CREATE UNIQUE INDEX projected_resources_pkey ON public.projected_resources USING btree (organization_id, resource_id)
  index CREATE INDEX projected_resources_types ON public.projected_resources USING gin (types) WHERE (NOT deleted)
  index CREATE INDEX projected_resources_uid ON public.projected_resources USING btree (organization_id, uid)
  policy organization all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant delete, insert, select, update to control_plane_api
  grant delete, insert, select, update to control_plane_worker

table projection_cursors row-security forced with fillfactor=60
  column organization_id uuid not null
  column revision bigint not null default 0
  column head bigint not null default 0
  column applied_at timestamp with time zone
  column generation integer not null default 0
  column rebuilt_at timestamp with time zone
  column rebuild_asked boolean not null default true
  column gaps bigint not null default 0
  column created_at timestamp with time zone not null default now()
  constraint projection_cursors_pkey PRIMARY KEY (organization_id)
  index CREATE UNIQUE INDEX projection_cursors_pkey ON public.projection_cursors USING btree (organization_id)
  policy figures select to control_plane_owner using true
  policy organization all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  policy worker all to control_plane_worker using true
  grant delete, insert, select, update to control_plane_api
  grant delete, insert, select, update to control_plane_worker

table resource_updates row-security forced with fillfactor=70
  column command_id uuid not null
  column operation_id uuid not null
  column organization_id uuid not null
  column node text not null
  column state text not null
  column body json not null
  constraint resource_updates_pkey PRIMARY KEY (command_id)
  index CREATE INDEX resource_updates_of_operation ON public.resource_updates USING btree (operation_id)
  index CREATE UNIQUE INDEX resource_updates_pkey ON public.resource_updates USING btree (command_id)
  policy organization all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant delete, insert, select, update to control_plane_api
  grant delete, insert, select, update to control_plane_worker

table result_channels row-security forced
  column organization_id uuid not null
  constraint result_channels_pkey PRIMARY KEY (organization_id)
  index CREATE UNIQUE INDEX result_channels_pkey ON public.result_channels USING btree (organization_id)
  policy organization all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  policy worker all to control_plane_worker using true
  grant delete, insert, select, update to control_plane_api
  grant delete, insert, select, update to control_plane_worker

table wakeups row-security forced with fillfactor=70
  column operation_id uuid not null
  column organization_id uuid not null
  column due_at timestamp with time zone
  column claims integer not null default 0
  constraint wakeups_pkey PRIMARY KEY (operation_id)
  index CREATE INDEX wakeups_due ON public.wakeups USING btree (due_at) WHERE (due_at IS NOT NULL)
  index CREATE UNIQUE INDEX wakeups_pkey ON public.wakeups USING btree (operation_id)
  policy figures select to control_plane_owner using true
  policy organization all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  policy worker all to control_plane_worker using true
  grant delete, insert, select, update to control_plane_api
  grant delete, insert, select, update to control_plane_worker
sequence audit_unchained_position_seq as bigint start 1 increment 1
sequence claim_tickets as bigint start 1 increment 1 grant usage to control_plane_api, usage to control_plane_worker
sequence inbox_id_seq as bigint start 1 increment 1
sequence outbox_id_seq as bigint start 1 increment 1
function CREATE OR REPLACE FUNCTION public.audit_await_chain() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path TO '$user', 'public' AS $function$ BEGIN INSERT INTO audit_unchained (organization_id, fact_id) SELECT organization_id, id FROM added; RETURN NULL; END $function$
function CREATE OR REPLACE FUNCTION public.feed_extend(revision bigint) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path TO '$user', 'public' AS $function$ DECLARE size bigint; ends bigint; partition text; BEGIN SELECT partition_rows INTO size FROM feed_state FOR UPDATE; SELECT coalesce(max(next), 1) INTO ends FROM feed_partitions; WHILE ends <= revision LOOP partition := 'feed_' || ends; EXECUTE format('CREATE TABLE %I (LIKE feed INCLUDING ALL)', partition); EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', partition); EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', partition); EXECUTE format('ALTER TABLE feed ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)', partition, ends, ends + size); INSERT INTO feed_partitions (first, next) VALUES (ends, ends + size); ends := ends + size; END LOOP; RETURN ends; END $function$
function CREATE OR REPLACE FUNCTION public.feed_reap(age interval) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path TO '$user', 'public' SET lock_timeout TO '500ms' AS $function$ DECLARE dropped bigint := 0; oldest feed_partitions; BEGIN UPDATE feed_partitions SET filled_at = now() WHERE filled_at IS NULL AND next <= (SELECT head + 1 FROM feed_state); LOOP SELECT * INTO oldest FROM feed_partitions ORDER BY first LIMIT 1; EXIT WHEN oldest.filled_at IS NULL OR oldest.filled_at > now() - age OR EXISTS (SELECT FROM feed_consumers WHERE acknowledged < oldest.next - 1); UPDATE feed_state SET floor = oldest.next - 1; EXECUTE format('DROP TABLE %I', 'feed_' || oldest.first); DELETE FROM feed_partitions WHERE first = oldest.first; dropped := dropped + 1; END LOOP; RETURN dropped; END $function$
function CREATE OR REPLACE FUNCTION public.operation_figures() RETURNS TABLE(kind text, name text, value double precision) LANGUAGE sql STABLE SECURITY DEFINER SET search_path TO '$user', 'public' AS $function$ SELECT 'operations', status, count(*)::float8 FROM operations WHERE ended_at IS NULL GROUP BY status UNION ALL SELECT 'effects', dependency, count(*)::float8 FROM effects GROUP BY dependency UNION ALL SELECT 'one', 'effects_failing', count(*)::float8 FROM effects WHERE failing_since IS NOT NULL UNION ALL SELECT 'one', 'oldest_effect_seconds', coalesce(extract(epoch FROM clock_timestamp() - min(created_at)), 0)::float8 FROM effects UNION ALL SELECT 'one', 'wakeups_overdue_seconds', coalesce(extract(epoch FROM clock_timestamp() - min(due_at)), 0)::float8 FROM wakeups WHERE due_at < clock_timestamp() UNION ALL SELECT 'one', 'inbox', count(*)::float8 FROM inbox UNION ALL SELECT 'one', 'deliveries', count(*)::float8 FROM content_deliveries WHERE delivered_at IS NULL UNION ALL SELECT 'one', 'projection_behind', coalesce(max(head - revision), 0)::float8 FROM projection_cursors UNION ALL SELECT 'one', 'projection_behind_seconds', coalesce(extract(epoch FROM clock_timestamp() - min(coalesce(applied_at, created_at))), 0)::float8 FROM projection_cursors WHERE head > revision OR rebuild_asked UNION ALL SELECT 'one', 'projection_gaps', coalesce(sum(gaps), 0)::float8 FROM projection_cursors UNION ALL SELECT 'one', 'projection_rebuilds_asked', count(*)::float8 FROM projection_cursors WHERE rebuild_asked UNION ALL SELECT 'one', 'projection_parked', count(*)::float8 FROM parked_resources $function$
