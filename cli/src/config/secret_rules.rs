//! Which secrets the jobs of an organization may name. execution-plane refuses a job by these rules when it
//! is submitted, a runner again before it resolves anything; each by what its own file says.

use execution_plane_runner::SecretRule;

use super::reader::Reader;

pub(super) fn secret_rules(reader: &Reader<'_>) -> Vec<SecretRule> {
    let mut rules = Vec::new();
    for row in reader.rows("secret_rules") {
        let prefix = row.parsed("prefix", |text| {
            let plain = text.starts_with("vault://") && !text.contains(['#', '*']);
            if plain {
                Ok(text.to_owned())
            } else {
                Err("this is vault://MOUNT/PATH without a field; it covers whole segments".to_owned())
            }
        });
        let organization = row.parsed_optional("organization", |text| {
            text.parse()
                .map_err(|_| "this is the UUID of an organization".to_owned())
        });
        row.finish();
        rules.extend(prefix.map(|prefix| SecretRule { organization, prefix }));
    }
    rules
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::role::{RoleFile, ServiceSection, role_of};
    use crate::error::CliError;

    const ORGANIZATION: &str = "0195f3a0-0000-7000-8000-000000000001";

    /// What `platform config check execution-plane FILE` finds in a file with `more` in it.
    fn read(directory: &Path, more: &str) -> Result<ServiceSection, CliError> {
        let key = directory.join("key.pem");
        let public = identity::PrivateKey::load_or_generate(&key).unwrap().public_key();
        let trust = directory.join("trust.toml");
        std::fs::write(
            &trust,
            format!("[[key]]\npublic_key = \"{public}\"\nvouches_for = [\"issuer\"]\n"),
        )
        .unwrap();
        let text = format!(
            "listen = \"127.0.0.1:7302\"\n[database]\nurl = \"postgres://a@127.0.0.1/a\"\n[identity]\n\
             key = \"{}\"\ntrust = \"{}\"\n[blobs]\ndirectory = \"/blobs\"\n{more}",
            key.display(),
            trust.display()
        );
        let file = directory.join("execution-plane.toml");
        std::fs::write(&file, text).unwrap();
        match role_of("execution-plane", &file)? {
            RoleFile::Service(section) => Ok(*section),
            RoleFile::Runner(_) => panic!("a service's file is a service's"),
        }
    }

    #[test]
    fn execution_planes_file_says_which_secrets_an_organization_may_name() {
        let directory = tempfile::tempdir().unwrap();
        let rules = format!(
            "[[secret_rules]]\nprefix = \"vault://kv/shared\"\n[[secret_rules]]\nprefix = \"vault://ssh/prod\"\n\
             organization = \"{ORGANIZATION}\"\n"
        );
        let section = read(directory.path(), &rules).unwrap_or_else(|error| panic!("{error}"));
        let rules: Vec<_> = section.secret_rules.into_iter().collect();
        assert_eq!(rules.len(), 2);
        assert_eq!(
            (rules[0].organization, rules[0].prefix.as_str()),
            (None, "vault://kv/shared")
        );
        assert_eq!(
            rules[1].organization.map(|id| id.to_string()).as_deref(),
            Some(ORGANIZATION)
        );
        let rules =
            execution_plane_server::SecretRules::of(rules.into_iter().map(|rule| (rule.organization, rule.prefix)));
        let may =
            |organization: &str, secret: &str| rules.allow(organization.parse().unwrap(), &secret.parse().unwrap());
        assert!(may(ORGANIZATION, "vault://ssh/prod/web#key") && !may(ORGANIZATION, "vault://kv/shared/a"));
        let other = "0195f3a0-0000-7000-8000-000000000002";
        assert!(may(other, "vault://kv/shared/a") && !may(other, "vault://ssh/prod/web#key"));
    }

    #[test]
    fn a_rule_that_makes_no_sense_is_a_fault_at_its_key() {
        let directory = tempfile::tempdir().unwrap();
        let rules =
            "[[secret_rules]]\nprefix = \"kv/a\"\n[[secret_rules]]\nprefix = \"vault://a/b\"\norganisation = \"x\"\n";
        let Err(error) = read(directory.path(), rules) else {
            panic!("this is no usable configuration")
        };
        let places: Vec<_> = error.faults.iter().map(|fault| fault.place.as_str()).collect();
        assert_eq!(places, ["secret_rules.1.prefix", "secret_rules.2.organisation"]);
    }
}
