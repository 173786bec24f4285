//! What a runner's file says.

use std::path::PathBuf;

use contracts::Isolation;
use execution_plane_runner::Config;
use secrecy::SecretString;

use super::reader::Reader;
use super::role::{RoleFile, absolute};
use super::secret::resolve;
use super::secret_rules::secret_rules;

/// One runner.
pub struct RunnerSection {
    pub config: Config,
    pub enrolment_token: SecretString,
    pub isolation: Vec<Isolation>,
    pub secrets: SecretsSection,
}

/// Where a runner resolves secrets.
pub struct SecretsSection {
    pub age_file: Option<PathBuf>,
}

pub(super) fn runner(reader: Reader<'_>) -> Option<RoleFile> {
    let service = reader.parsed("service", |text| {
        client_kit::Client::new(text, None)
            .map(|client| client.base().to_owned())
            .map_err(|error| error.to_string())
    });
    let name: Option<String> = reader.required("name");
    let state = reader.parsed("state_directory", absolute);
    let enrolment_token = reader.parsed("enrolment_token", resolve);
    let mut config = Config::new(
        service.clone().unwrap_or_default(),
        name.clone().unwrap_or_default(),
        state.clone().unwrap_or_default(),
    );
    offer(&reader, &mut config);
    places(&reader, &mut config);
    limits(&reader, &mut config);
    config.secret_rules = secret_rules(&reader);
    let isolation = isolation(&reader);
    let secrets = reader.section("secrets");
    let age_file = secrets.parsed_optional("age_file", absolute);
    secrets.finish();
    reader.finish();
    service?;
    name?;
    state?;
    Some(RoleFile::Runner(Box::new(RunnerSection {
        config,
        enrolment_token: enrolment_token?,
        isolation,
        secrets: SecretsSection { age_file },
    })))
}

/// What jobs it takes, and how many.
fn offer(reader: &Reader<'_>, config: &mut Config) {
    config.pools = reader.optional("pools").unwrap_or_default();
    config.environments = reader.optional("environments").unwrap_or_default();
    config.labels = reader.texts("labels");
    if let Some(capacity) = reader.optional("capacity") {
        config.capacity = capacity;
        if capacity == 0 {
            reader.fault("capacity", "a runner takes at least one attempt");
        }
    }
    if let Some(targets) = reader.optional("parallel_targets") {
        config.parallel_targets = targets;
        if targets == 0 {
            reader.fault("parallel_targets", "a job works on at least one target at once");
        }
    }
}

fn places(reader: &Reader<'_>, config: &mut Config) {
    if let Some(directory) = reader.parsed_optional("runtime_directory", absolute) {
        config.runtime_directory = directory;
    }
    config.ansible_directory = reader.parsed_optional("ansible_directory", absolute);
    if let Some(program) = reader.parsed_optional("ssh_program", absolute) {
        config.ssh_program = program;
    }
    let logs: Vec<String> = reader.optional("readable_logs").unwrap_or_default();
    for text in &logs {
        match absolute(text) {
            Ok(directory) => config.readable_logs.push(directory),
            Err(_) => reader.fault("readable_logs", format!("{text:?} is not an absolute path")),
        }
    }
}

fn limits(reader: &Reader<'_>, config: &mut Config) {
    let seconds = |key: &str, into: &mut f64| {
        if let Some(seconds) = reader.optional::<f64>(key) {
            *into = seconds;
            if !seconds.is_finite() || seconds < 0.0 {
                reader.fault(key, "this is a number of seconds from 0");
            }
        }
    };
    seconds("stop_grace_seconds", &mut config.stop_grace_seconds);
    seconds("drain_seconds", &mut config.drain_seconds);
    let bytes = |key: &str, into: &mut u64| {
        if let Some(bytes) = reader.optional::<u64>(key) {
            *into = bytes;
            if bytes == 0 {
                reader.fault(key, "this is a number of bytes from 1");
            }
        }
    };
    bytes("output_limit_bytes", &mut config.output_limit_bytes);
    bytes("artifact_limit_bytes", &mut config.artifact_limit_bytes);
}

fn isolation(reader: &Reader<'_>) -> Vec<Isolation> {
    let words: Vec<String> = reader
        .optional("isolation")
        .unwrap_or_else(|| vec!["sandbox".to_owned()]);
    let mut grades = Vec::new();
    for word in &words {
        match word.as_str() {
            "sandbox" => grades.push(Isolation::Sandbox),
            "process" => grades.push(Isolation::Process),
            other => reader.fault(
                "isolation",
                format!("{other:?} is not a grade that this runner can give: sandbox, process"),
            ),
        }
    }
    grades
}

#[cfg(test)]
mod tests {
    use super::super::reader::Faults;
    use super::*;

    const NEEDED: &str = "service = \"http://127.0.0.1:7302\"\nname = \"a\"\nstate_directory = \"/s\"\n";

    fn read(more: &str) -> (Option<RunnerSection>, Vec<String>) {
        let directory = tempfile::tempdir().unwrap();
        let token = directory.path().join("token");
        std::fs::write(&token, "t").unwrap();
        let text = format!("{NEEDED}enrolment_token = \"file://{}\"\n{more}", token.display());
        let faults = Faults::default();
        let reader = Reader::with_environment("runner", toml::from_str(&text).unwrap(), &faults, |_| None);
        let read = runner(reader).map(|file| match file {
            RoleFile::Runner(section) => *section,
            RoleFile::Service(_) => panic!("a runner's file is a runner's"),
        });
        let told = faults.into_error("f").map_or(Vec::new(), |error| error.faults);
        (read, told.into_iter().map(|fault| fault.place).collect())
    }

    #[test]
    fn every_key_of_a_runner_can_be_said() {
        let (section, faults) = read(
            "readable_logs = [\"/var/log/app\"]\nssh_program = \"/opt/ssh\"\nparallel_targets = 4\ndrain_seconds = 1.5\n\
             stop_grace_seconds = 2\noutput_limit_bytes = 1024\nartifact_limit_bytes = 5000000000\ncapacity = 3\n\
             [[secret_rules]]\nprefix = \"vault://kv/shared\"\n[[secret_rules]]\nprefix = \"vault://ssh/prod\"\n\
             organization = \"0195f3a0-0000-7000-8000-000000000001\"\n",
        );
        assert_eq!(faults, [""; 0]);
        let config = section.unwrap().config;
        assert_eq!(config.readable_logs, [PathBuf::from("/var/log/app")]);
        assert_eq!(config.ssh_program, PathBuf::from("/opt/ssh"));
        assert_eq!((config.parallel_targets, config.capacity), (4, 3));
        assert!((config.drain_seconds - 1.5).abs() < f64::EPSILON);
        assert_eq!(
            (config.output_limit_bytes, config.artifact_limit_bytes),
            (1024, 5_000_000_000)
        );
        assert_eq!(config.secret_rules.len(), 2);
        assert_eq!(config.secret_rules[0].organization, None);
        assert!(config.secret_rules[1].organization.is_some());
    }

    #[test]
    fn values_that_make_no_sense_are_faults_at_their_keys() {
        let (_, faults) = read(
            "readable_logs = [\"log\"]\nssh_program = \"ssh\"\nparallel_targets = 0\ndrain_seconds = -1\ncapacity = 0\n\
             output_limit_bytes = 0\nartifact_limit_bytes = -1\n[[secret_rules]]\nprefix = \"kv/a\"\n[[secret_rules]]\norganisation = \"x\"\n",
        );
        assert_eq!(
            faults,
            [
                "artifact_limit_bytes",
                "capacity",
                "drain_seconds",
                "output_limit_bytes",
                "parallel_targets",
                "readable_logs",
                "secret_rules.1.prefix",
                "secret_rules.2.organisation",
                "secret_rules.2.prefix",
                "ssh_program",
            ]
        );
    }
}
