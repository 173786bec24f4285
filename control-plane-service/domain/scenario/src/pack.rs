//! A pack as a whole: its files read, checked and pinned.

use std::collections::BTreeMap;

use control_plane_plan::{RetryPolicy, ScenarioPin};
use kernel::Sha256Digest;
use semver::Version;

use crate::bundle::Bundle;
use crate::fault::{Fault, FaultCode, Faults, Position};
use crate::manifest::{self, MANIFEST, Manifest};
use crate::reader::Placed;
use crate::reading::{self, Around};
use crate::secrets;
use crate::template::Template;
use crate::yaml;

/// A valid pack.
#[derive(Debug, Clone)]
pub struct Pack {
    pub name: String,
    pub version: Version,
    pub description: String,
    /// Over path, content and mode of every file.
    pub digest: Sha256Digest,
    /// What its jobs take along.
    pub content: Option<Content>,
    pub templates: BTreeMap<String, Template>,
}

/// The files under a pack's content directory as one archive; equal files give equal bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    pub digest: Sha256Digest,
    pub archive: Vec<u8>,
}

impl Pack {
    /// Reads and checks everything.
    ///
    /// # Errors
    /// Every fault of every file, sorted by file and place.
    pub fn read(bundle: &Bundle) -> Result<Self, Vec<Fault>> {
        let mut faults = Vec::new();
        let manifest = read_manifest(bundle, &mut faults);
        let content = manifest.as_ref().and_then(|m| m.content.as_ref());
        check_layout(bundle, content, &mut faults);
        let (directory, content) = read_content(bundle, content, &mut faults);
        let policies = manifest
            .as_ref()
            .map_or_else(manifest::built_in, |m| m.retry_policies.clone());
        let templates = read_templates(bundle, directory, &policies, &mut faults);
        let digest = bundle
            .digest()
            .map_err(|error| faults.push(whole_pack(&error.to_string())))
            .ok();
        faults.sort();
        faults.dedup();
        match (manifest, digest) {
            (
                Some(Manifest {
                    name: Some(name),
                    version: Some(version),
                    description,
                    ..
                }),
                Some(digest),
            ) if faults.is_empty() => Ok(Self {
                name,
                version,
                description,
                digest,
                content,
                templates,
            }),
            _ => Err(faults),
        }
    }

    /// What a plan of `template` is pinned to.
    #[must_use]
    pub fn pin(&self, template: &Template) -> ScenarioPin {
        ScenarioPin {
            pack: self.name.clone(),
            pack_version: self.version.to_string(),
            pack_digest: self.digest,
            content_digest: self.content.as_ref().map(|content| content.digest),
            template: template.name.clone(),
        }
    }
}

fn whole_pack(message: &str) -> Fault {
    Fault {
        file: MANIFEST.to_owned(),
        at: Position::default(),
        code: FaultCode::LimitExceeded,
        message: message.to_owned(),
        remedy: "make the pack smaller".to_owned(),
    }
}

/// A file's text and tree; whatever is wrong with it goes into `faults`.
fn read_yaml(bundle: &Bundle, path: &str, faults: &Faults) -> Option<yaml::Node> {
    let file = bundle.files().get(path)?;
    match core::str::from_utf8(&file.bytes) {
        Ok(text) => yaml::read(text, faults),
        Err(error) => {
            let before = &file.bytes[..error.valid_up_to()];
            let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
            let at = Position {
                line: u32::try_from(line).unwrap_or(u32::MAX),
                column: 1,
            };
            faults.add(at, FaultCode::Syntax, "this is not UTF-8", "save the file as UTF-8");
            None
        }
    }
}

fn read_manifest(bundle: &Bundle, all: &mut Vec<Fault>) -> Option<Manifest> {
    let faults = Faults::of(MANIFEST);
    if !bundle.files().contains_key(MANIFEST) {
        faults.add(
            Position::default(),
            FaultCode::MissingFile,
            "the pack has no pack.yaml",
            "put pack.yaml at the top of the pack, not into a directory",
        );
    }
    let manifest = read_yaml(bundle, MANIFEST, &faults).and_then(|root| manifest::read(&root, &faults));
    all.extend(faults.into_list());
    manifest
}

fn is_template(path: &str) -> bool {
    path.strip_prefix("templates/")
        .is_some_and(|name| !name.contains('/') && (name.ends_with(".yaml") || name.ends_with(".yml")))
}

/// A file that nothing reads is a file that its author believes to have an effect.
fn check_layout(bundle: &Bundle, content: Option<&Placed<String>>, all: &mut Vec<Fault>) {
    let mut templates = 0;
    for (path, file) in bundle.files() {
        let in_content = content.is_some_and(|c| path.starts_with(&format!("{}/", c.value)));
        let is_test = path.starts_with("tests/");
        let is_prose = !path.contains('/') && matches!(path.as_str(), "README.md" | "LICENSE" | "CHANGELOG.md");
        templates += usize::from(is_template(path));
        let faults = Faults::of(path.clone());
        if !(path == MANIFEST || is_template(path) || in_content || is_test || is_prose) {
            faults.add(
                Position::default(),
                FaultCode::UnexpectedFile,
                "nothing in a pack reads this file",
                "templates are templates/*.yaml; what jobs use belongs under the directory that `content` in pack.yaml names",
            );
        }
        if let Ok(text) = core::str::from_utf8(&file.bytes)
            && secrets::holds_private_key(text)
        {
            faults.add(
                Position::default(),
                FaultCode::SecretValue,
                "this file holds a private key",
                "remove it and take a reference: `secrets: [{secret_ref: vault://MOUNT/PATH}]`",
            );
        }
        all.extend(faults.into_list());
    }
    if templates == 0 {
        all.push(Fault {
            file: "templates/".to_owned(),
            at: Position::default(),
            code: FaultCode::MissingFile,
            message: "the pack has no template".to_owned(),
            remedy: "add templates/NAME.yaml".to_owned(),
        });
    }
}

fn read_content(
    bundle: &Bundle,
    named: Option<&Placed<String>>,
    all: &mut Vec<Fault>,
) -> (Option<String>, Option<Content>) {
    let Some(named) = named else {
        return (None, None);
    };
    let directory = format!("{}/", named.value);
    let faults = Faults::of(MANIFEST);
    let reserved = ["templates", "tests"].contains(&named.value.as_str());
    let there = bundle.files().keys().any(|path| path.starts_with(&directory));
    if reserved || !there {
        faults.add(
            named.at,
            FaultCode::MissingContent,
            format!("there is no content in `{directory}`"),
            "name a directory of the pack that holds what jobs use",
        );
        all.extend(faults.into_list());
        return (Some(directory), None);
    }
    match bundle.below(&directory) {
        Ok(archive) => {
            let content = Content {
                digest: Sha256Digest::of(&archive),
                archive,
            };
            (Some(directory), Some(content))
        }
        Err(error) => {
            all.push(whole_pack(&error.to_string()));
            (Some(directory), None)
        }
    }
}

fn read_templates(
    bundle: &Bundle,
    content: Option<String>,
    retry_policies: &BTreeMap<String, RetryPolicy>,
    all: &mut Vec<Fault>,
) -> BTreeMap<String, Template> {
    let around = Around {
        bundle,
        content,
        retry_policies,
    };
    let mut templates: BTreeMap<String, (String, Template)> = BTreeMap::new();
    for path in bundle.files().keys().filter(|path| is_template(path)) {
        let faults = Faults::of(path.clone());
        let template = read_yaml(bundle, path, &faults).and_then(|root| reading::template(&root, &around, &faults));
        if let Some(template) = template {
            if let Some((first, _)) = templates.get(&template.name) {
                faults.add(
                    Position { line: 1, column: 1 },
                    FaultCode::DuplicateName,
                    format!("{first} holds a template called `{}` too", template.name),
                    "give each template a name of its own",
                );
            }
            templates.insert(template.name.clone(), (path.clone(), template));
        }
        all.extend(faults.into_list());
    }
    templates
        .into_iter()
        .map(|(name, (_, template))| (name, template))
        .collect()
}
