table artifacts row-security forced
  column organization_id uuid not null
  column attempt_id uuid not null
  column name text not null
  column artifact_id uuid not null
  column operation_id uuid not null
  column plan_node_id text not null
  column artifact_type text not null
  column sensitivity text not null
  column uri text not null
  column sha256 bytea not null
  column size_bytes bigint not null
  column media_type text
  column recorded_at timestamp with time zone not null default clock_timestamp()
  constraint artifacts_organization_id_attempt_id_fkey FOREIGN KEY (organization_id, attempt_id) REFERENCES attempts(organization_id, attempt_id)
  constraint artifacts_pkey PRIMARY KEY (organization_id, attempt_id, name)
  constraint artifacts_sensitivity_check CHECK ((sensitivity = ANY (ARRAY['public'::text, 'internal'::text])))
  index CREATE INDEX artifacts_operation ON public.artifacts USING btree (organization_id, operation_id, name, recorded_at DESC)
  index CREATE UNIQUE INDEX artifacts_pkey ON public.artifacts USING btree (organization_id, attempt_id, name)
  policy organization all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant insert, select, update to execution_plane_api
  grant insert, select, update to execution_plane_worker

table attempts row-security forced
  column organization_id uuid not null
  column attempt_id uuid not null
  column operation_id uuid not null
  column plan_node_id text not null
  column job_type text not null
  column environment text not null
  column runner_name text not null
  column runner_labels jsonb not null
  column isolation smallint not null
  column spec text not null
  column spec_sha256 bytea not null
  column policy_name text
  column policy_version bigint
  column content_bytes bigint
  column state text not null
  column version bigint not null default 1
  column epoch bigint not null default 0
  column ran boolean not null default false
  column runner_id uuid
  column isolation_used smallint
  column queue_position bigint not null identity always
  column queued_at timestamp with time zone not null default clock_timestamp()
  column leased_at timestamp with time zone
  column started_at timestamp with time zone
  column finished_at timestamp with time zone
  column cancel_requested_at timestamp with time zone
  column cancel_reason text
  column reason text
  constraint attempts_ended CHECK (((state = ANY (ARRAY['succeeded'::text, 'failed'::text, 'cancelled'::text, 'timed_out'::text, 'lost'::text])) = (finished_at IS NOT NULL)))
  constraint attempts_granted CHECK (((epoch = 0) = (runner_id IS NULL)))
  constraint attempts_pkey PRIMARY KEY (organization_id, attempt_id)
  constraint attempts_state_check CHECK ((state = ANY (ARRAY['queued'::text, 'leased'::text, 'starting'::text, 'running'::text, 'cancelling'::text, 'succeeded'::text, 'failed'::text, 'cancelled'::text, 'timed_out'::text, 'lost'::text])))
  index CREATE INDEX attempts_operation ON public.attempts USING btree (organization_id, operation_id, attempt_id)
  index CREATE UNIQUE INDEX attempts_pkey ON public.attempts USING btree (organization_id, attempt_id)
  index CREATE INDEX attempts_queue ON public.attempts USING btree (organization_id, queue_position) WHERE (state = 'queued'::text)
  policy figures select to execution_plane_owner using true
  policy organization all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant insert, select, update to execution_plane_api
  grant insert, select, update to execution_plane_worker

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
  column remote_address text not null
  column detail json not null
  constraint audit_pkey PRIMARY KEY (organization_id, id)
  index CREATE UNIQUE INDEX audit_pkey ON public.audit USING btree (organization_id, id)
  policy carry select to execution_plane_worker using true
  policy organization all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant insert, select to execution_plane_api
  grant insert, select to execution_plane_worker
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
  policy carry all to execution_plane_worker using true
  policy organization all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant select to execution_plane_api
  grant insert, select to execution_plane_worker

table audit_heads row-security forced
  column organization_id uuid not null
  column sequence bigint not null
  column hash bytea not null
  constraint audit_heads_pkey PRIMARY KEY (organization_id)
  index CREATE UNIQUE INDEX audit_heads_pkey ON public.audit_heads USING btree (organization_id)
  policy carry all to execution_plane_worker using true
  policy organization all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant select to execution_plane_api
  grant insert, select, update to execution_plane_worker

table audit_unchained row-security forced
  column position bigint not null identity always
  column organization_id uuid not null
  column fact_id uuid not null
  constraint audit_unchained_pkey PRIMARY KEY ("position")
  index CREATE UNIQUE INDEX audit_unchained_pkey ON public.audit_unchained USING btree ("position")
  policy carry all to execution_plane_worker using true
  policy organization all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant select to execution_plane_api
  grant delete, select to execution_plane_worker

table command_policies row-security forced
  column organization_id uuid not null
  column name text not null
  column version bigint not null
  column body jsonb not null
  column created_at timestamp with time zone not null default now()
  constraint command_policies_pkey PRIMARY KEY (organization_id, name, version)
  constraint command_policies_version_check CHECK ((version >= 1))
  index CREATE UNIQUE INDEX command_policies_pkey ON public.command_policies USING btree (organization_id, name, version)
  policy organization all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant insert, select, update to execution_plane_api
  grant insert, select, update to execution_plane_worker

table contents row-security forced
  column organization_id uuid not null
  column sha256 bytea not null
  column size_bytes bigint not null
  column stored_at timestamp with time zone not null default now()
  constraint contents_pkey PRIMARY KEY (organization_id, sha256)
  index CREATE UNIQUE INDEX contents_pkey ON public.contents USING btree (organization_id, sha256)
  policy organization all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant insert, select, update to execution_plane_api
  grant insert, select, update to execution_plane_worker

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
  policy carry all to execution_plane_worker using true
  policy own all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant select to execution_plane_api
  grant insert, select to execution_plane_worker

table feed_consumers
  column name text not null
  column acknowledged bigint not null
  column acknowledged_at timestamp with time zone not null default now()
  constraint feed_consumers_pkey PRIMARY KEY (name)
  index CREATE UNIQUE INDEX feed_consumers_pkey ON public.feed_consumers USING btree (name)
  grant insert, select, update to execution_plane_api
  grant delete, insert, select, update to execution_plane_worker

table feed_partitions
  column first bigint not null
  column next bigint not null
  column filled_at timestamp with time zone
  constraint feed_partitions_check CHECK ((next > first))
  constraint feed_partitions_next_key UNIQUE (next)
  constraint feed_partitions_pkey PRIMARY KEY (first)
  index CREATE UNIQUE INDEX feed_partitions_next_key ON public.feed_partitions USING btree (next)
  index CREATE UNIQUE INDEX feed_partitions_pkey ON public.feed_partitions USING btree (first)
  grant select to execution_plane_worker

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
  grant select to execution_plane_api
  grant select, update to execution_plane_worker

table leases row-security forced with fillfactor=50
  column organization_id uuid not null
  column attempt_id uuid not null
  column runner_id uuid not null
  column session bigint not null
  column epoch bigint not null
  column deadline_at timestamp with time zone not null
  column cancel_requested boolean not null default false
  constraint leases_organization_id_attempt_id_fkey FOREIGN KEY (organization_id, attempt_id) REFERENCES attempts(organization_id, attempt_id)
  constraint leases_pkey PRIMARY KEY (organization_id, attempt_id)
  index CREATE UNIQUE INDEX leases_pkey ON public.leases USING btree (organization_id, attempt_id)
  index CREATE INDEX leases_runner ON public.leases USING btree (organization_id, runner_id)
  policy every_organization select to execution_plane_worker using true
  policy figures select to execution_plane_owner using true
  policy organization all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant delete, insert, select, update to execution_plane_api
  grant delete, insert, select, update to execution_plane_worker

table log_bundles row-security forced
  column organization_id uuid not null
  column attempt_id uuid not null
  column log_id uuid not null
  column uri text not null
  column sha256 bytea not null
  column size_bytes bigint not null
  column lines bigint not null
  constraint log_bundles_organization_id_attempt_id_fkey FOREIGN KEY (organization_id, attempt_id) REFERENCES attempts(organization_id, attempt_id)
  constraint log_bundles_pkey PRIMARY KEY (organization_id, attempt_id)
  index CREATE UNIQUE INDEX log_bundles_pkey ON public.log_bundles USING btree (organization_id, attempt_id)
  policy organization all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant insert, select, update to execution_plane_api
  grant insert, select, update to execution_plane_worker

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
  policy carry all to execution_plane_worker using true
  policy own all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant insert to execution_plane_api
  grant delete, insert, select to execution_plane_worker

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
  policy carry all to execution_plane_worker using true
  policy own all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant delete, insert, select to execution_plane_worker

table output_compactions row-security forced
  column organization_id uuid not null
  column attempt_id uuid not null
  constraint output_compactions_organization_id_attempt_id_fkey FOREIGN KEY (organization_id, attempt_id) REFERENCES attempts(organization_id, attempt_id)
  constraint output_compactions_pkey PRIMARY KEY (organization_id, attempt_id)
  index CREATE UNIQUE INDEX output_compactions_pkey ON public.output_compactions USING btree (organization_id, attempt_id)
  policy every_organization select to execution_plane_worker using true
  policy organization all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant insert, select, update to execution_plane_api
  grant delete, insert, select, update to execution_plane_worker

table output_segments row-security forced
  column organization_id uuid not null
  column attempt_id uuid not null
  column first_sequence bigint not null
  column last_sequence bigint not null
  column byte_offset bigint not null
  column byte_length bigint not null
  column chunks jsonb not null
  column data bytea
  constraint output_segments_byte_length_check CHECK ((byte_length >= 0))
  constraint output_segments_byte_offset_check CHECK ((byte_offset >= 0))
  constraint output_segments_check CHECK ((last_sequence >= first_sequence))
  constraint output_segments_first_sequence_check CHECK ((first_sequence >= 1))
  constraint output_segments_organization_id_attempt_id_fkey FOREIGN KEY (organization_id, attempt_id) REFERENCES attempts(organization_id, attempt_id)
  constraint output_segments_pkey PRIMARY KEY (organization_id, attempt_id, first_sequence)
  index CREATE UNIQUE INDEX output_segments_pkey ON public.output_segments USING btree (organization_id, attempt_id, first_sequence)
  policy organization all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant insert, select, update to execution_plane_api
  grant insert, select, update to execution_plane_worker

table results row-security forced
  column organization_id uuid not null
  column attempt_id uuid not null
  column position bigint not null identity always
  column body text not null
  column report_sha256 bytea
  column acknowledged_at timestamp with time zone
  constraint results_organization_id_attempt_id_fkey FOREIGN KEY (organization_id, attempt_id) REFERENCES attempts(organization_id, attempt_id)
  constraint results_pkey PRIMARY KEY (organization_id, attempt_id)
  index CREATE UNIQUE INDEX results_pkey ON public.results USING btree (organization_id, attempt_id)
  index CREATE INDEX results_unacknowledged ON public.results USING btree (organization_id, "position") WHERE (acknowledged_at IS NULL)
  policy figures select to execution_plane_owner using true
  policy organization all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant insert, select, update to execution_plane_api
  grant insert, select, update to execution_plane_worker

table runners row-security forced
  column organization_id uuid not null
  column runner_id uuid not null
  column name text not null
  column pools text[] not null
  column labels jsonb not null
  column job_types text[] not null
  column isolation smallint[] not null
  column capacity integer not null
  column environments text[] not null
  column software_version text
  column draining boolean not null default false
  column session bigint not null
  column instance uuid not null
  column version bigint not null
  column registered_at timestamp with time zone not null default now()
  column last_seen_at timestamp with time zone not null default now()
  constraint runners_capacity_check CHECK (((capacity >= 1) AND (capacity <= 10000)))
  constraint runners_name UNIQUE (organization_id, name)
  constraint runners_name_check CHECK (((length(name) >= 1) AND (length(name) <= 200)))
  constraint runners_pkey PRIMARY KEY (organization_id, runner_id)
  constraint runners_session_check CHECK ((session >= 1))
  constraint runners_version_check CHECK ((version >= 1))
  index CREATE UNIQUE INDEX runners_name ON public.runners USING btree (organization_id, name)
  index CREATE UNIQUE INDEX runners_pkey ON public.runners USING btree (organization_id, runner_id)
  policy figures select to execution_plane_owner using true
  policy organization all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant insert, select, update to execution_plane_api
  grant insert, select, update to execution_plane_worker
sequence attempts_queue_position_seq as bigint start 1 increment 1
sequence audit_unchained_position_seq as bigint start 1 increment 1
sequence outbox_id_seq as bigint start 1 increment 1
sequence results_position_seq as bigint start 1 increment 1
function CREATE OR REPLACE FUNCTION public.audit_await_chain() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path TO '$user', 'public' AS $function$ BEGIN INSERT INTO audit_unchained (organization_id, fact_id) SELECT organization_id, id FROM added; RETURN NULL; END $function$
function CREATE OR REPLACE FUNCTION public.execution_figures() RETURNS TABLE(name text, value double precision) LANGUAGE sql STABLE SECURITY DEFINER SET search_path TO '$user', 'public' AS $function$ SELECT 'queued', count(*)::float8 FROM attempts WHERE state = 'queued' UNION ALL SELECT a.state, count(*)::float8 FROM leases l JOIN attempts a USING (organization_id, attempt_id) GROUP BY a.state UNION ALL SELECT 'oldest_queued_seconds', coalesce(extract(epoch FROM clock_timestamp() - min(queued_at)), 0)::float8 FROM attempts WHERE state = 'queued' UNION ALL SELECT 'leases_overdue', count(*)::float8 FROM leases WHERE deadline_at < clock_timestamp() UNION ALL SELECT 'results_unacknowledged', count(*)::float8 FROM results WHERE acknowledged_at IS NULL UNION ALL SELECT 'oldest_result_seconds', coalesce(extract(epoch FROM clock_timestamp() - min(a.finished_at)), 0)::float8 FROM results r JOIN attempts a USING (organization_id, attempt_id) WHERE r.acknowledged_at IS NULL UNION ALL SELECT CASE WHEN draining THEN 'runners_draining' ELSE 'runners_taking' END, count(*)::float8 FROM runners GROUP BY draining UNION ALL SELECT 'runners_silent', count(*)::float8 FROM runners WHERE last_seen_at < clock_timestamp() - interval '5 minutes' $function$
function CREATE OR REPLACE FUNCTION public.feed_extend(revision bigint) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path TO '$user', 'public' AS $function$ DECLARE size bigint; ends bigint; partition text; BEGIN SELECT partition_rows INTO size FROM feed_state FOR UPDATE; SELECT coalesce(max(next), 1) INTO ends FROM feed_partitions; WHILE ends <= revision LOOP partition := 'feed_' || ends; EXECUTE format('CREATE TABLE %I (LIKE feed INCLUDING ALL)', partition); EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', partition); EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', partition); EXECUTE format('ALTER TABLE feed ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)', partition, ends, ends + size); INSERT INTO feed_partitions (first, next) VALUES (ends, ends + size); ends := ends + size; END LOOP; RETURN ends; END $function$
function CREATE OR REPLACE FUNCTION public.feed_reap(age interval) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path TO '$user', 'public' SET lock_timeout TO '500ms' AS $function$ DECLARE dropped bigint := 0; oldest feed_partitions; BEGIN UPDATE feed_partitions SET filled_at = now() WHERE filled_at IS NULL AND next <= (SELECT head + 1 FROM feed_state); LOOP SELECT * INTO oldest FROM feed_partitions ORDER BY first LIMIT 1; EXIT WHEN oldest.filled_at IS NULL OR oldest.filled_at > now() - age OR EXISTS (SELECT FROM feed_consumers WHERE acknowledged < oldest.next - 1); UPDATE feed_state SET floor = oldest.next - 1; EXECUTE format('DROP TABLE %I', 'feed_' || oldest.first); DELETE FROM feed_partitions WHERE first = oldest.first; dropped := dropped + 1; END LOOP; RETURN dropped; END $function$
