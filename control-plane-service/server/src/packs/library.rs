//! Packs that were read, kept by digest: reading one again gives the same, so it need not be done for
//! every preview.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use api_kit::{Problem, database_problem, internal_problem};
use control_plane_scenario::{Bundle, Pack};
use kernel::Sha256Digest;
use semver::Version;
use sqlx::PgConnection;

use super::store;

/// Most packs kept.
const KEPT: usize = 32;

/// Packs by digest, the most recently used last. A digest says all: equal files give equal packs, in
/// whatever organization.
#[derive(Debug, Default)]
pub struct Library {
    kept: Mutex<VecDeque<Arc<Pack>>>,
}

impl Library {
    /// Keeps a pack that was just read.
    pub fn keep(&self, pack: Pack) -> Arc<Pack> {
        let pack = Arc::new(pack);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|other| other.digest != pack.digest);
        kept.push_back(Arc::clone(&pack));
        if kept.len() > KEPT {
            kept.pop_front();
        }
        pack
    }

    fn kept(&self, digest: Sha256Digest) -> Option<Arc<Pack>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|pack| pack.digest == digest)?;
        let pack = kept.remove(at)?;
        kept.push_back(Arc::clone(&pack));
        Some(pack)
    }

    /// A published version; the newest one when none is named. Pre-releases are only the newest when there
    /// is nothing else.
    ///
    /// # Errors
    /// 404 when it is not published.
    pub async fn load(
        &self,
        connection: &mut PgConnection,
        name: &str,
        version: Option<&str>,
    ) -> Result<Arc<Pack>, Problem> {
        let fault = |error: sqlx::Error| database_problem(&error.into());
        let published = store::versions(connection, name).await.map_err(fault)?;
        let wanted = match version {
            Some(version) => published.into_iter().find(|(published, _)| published == version),
            None => newest(published),
        };
        let missing = || match version {
            Some(version) => Problem::not_found(format_args!("pack {name} {version}")),
            None => Problem::not_found(format_args!("pack {name}")),
        };
        let (version, digest) = wanted.ok_or_else(missing)?;
        if let Some(pack) = self.kept(digest) {
            return Ok(pack);
        }
        let archive = store::archive(connection, name, &version).await.map_err(fault)?;
        let archive = archive.ok_or_else(missing)?;
        let read = tokio::task::spawn_blocking(move || reread(&archive));
        let pack = read.await.map_err(|error| internal_problem(&error))??;
        Ok(self.keep(pack))
    }
}

fn newest(published: Vec<(String, Sha256Digest)>) -> Option<(String, Sha256Digest)> {
    let order = |text: &str| {
        let version = Version::parse(text).ok();
        (version.as_ref().is_some_and(|v| v.pre.is_empty()), version)
    };
    published.into_iter().max_by_key(|(version, _)| order(version))
}

/// What was published was valid then; a later version of this service may be stricter.
pub fn reread(archive: &[u8]) -> Result<Pack, Problem> {
    let bundle = Bundle::from_tar(archive).map_err(|error| internal_problem(&error))?;
    Pack::read(&bundle).map_err(|faults| {
        super::intake::invalid(faults)
            .remedy("The pack was published when the rules were weaker: publish a new version of it.")
    })
}
