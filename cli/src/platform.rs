//! The three services as a client command sees them, and their errors as a person reads them.

use std::sync::Arc;

use client_kit::{Client, ClientError, Problem};
use identity::{BearerToken, RotatingToken, TokenSource};

use crate::context::Session;
use crate::error::{CliError, Fault};
use crate::exit::Exit;

const TOKEN_HINT: &str = "make a token with 'platform token mint' and set PLATFORM_TOKEN to it, or name its file in the context (token_file)";

const ROLE_HINT: &str =
    "show another token: 'platform token mint SUBJECT --role ROLE' makes one where the platform's key is";

/// Clients of one platform.
pub struct Platform {
    pub catalog: resource_catalog_api::Client,
    pub control: control_plane_api::ControlPlane,
    pub execution: execution_plane_api::ExecutionPlane,
}

impl Platform {
    /// Clients for the addresses and the token of `session`.
    ///
    /// # Errors
    /// When an address is none, or there is no token.
    pub fn connect(session: Session) -> Result<Self, CliError> {
        let Some(token) = &session.token else {
            return Err(CliError::new(Exit::Forbidden, "there is no token to show").hint(TOKEN_HINT));
        };
        let tokens: Arc<dyn TokenSource> = Arc::new(RotatingToken::new(BearerToken::new(token.clone())));
        let client = |base: &str| Client::new(base, Some(tokens.clone()));
        Ok(Self {
            catalog: resource_catalog_api::Client::new(&session.context.resource_catalog, Some(tokens.clone()))?,
            control: control_plane_api::ControlPlane::new(client(&session.context.control_plane)?),
            execution: execution_plane_api::ExecutionPlane::new(client(&session.context.execution_plane)?),
        })
    }
}

impl From<ClientError> for CliError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Problem(problem) => of_problem(&problem),
            ClientError::Unreachable { url, source } => Self::new(
                Exit::Unreachable,
                format!("{url} cannot be reached: {}", innermost(&source)),
            )
            .hint("is the platform running? 'platform up' starts one; the context file says where it is expected"),
            ClientError::Address(address) => Self::usage(format!("{address:?} is not the address of a service"))
                .hint("an address looks like http://HOST:PORT; see the context file"),
            other => Self::new(Exit::Internal, kernel::with_causes(&other)),
        }
    }
}

/// A problem document as a command's error.
pub fn of_problem(problem: &Problem) -> CliError {
    let exit = match problem.status {
        401 | 403 => Exit::Forbidden,
        404 => Exit::NotFound,
        409 | 412 => Exit::Conflict,
        502..=504 => Exit::Unreachable,
        500.. => Exit::Internal,
        _ => Exit::Refused,
    };
    let message = if problem.detail.is_empty() {
        problem.title.clone()
    } else {
        problem.detail.clone()
    };
    CliError {
        exit,
        message,
        faults: problem
            .errors
            .iter()
            .map(|e| Fault {
                place: e.pointer.clone(),
                problem: e.detail.clone(),
            })
            .collect(),
        hint: match problem.status {
            // The service's remedy is for those who write requests.
            401 => Some(TOKEN_HINT.to_owned()),
            403 => problem.remedy.clone().or_else(|| Some(ROLE_HINT.to_owned())),
            _ => problem.remedy.clone(),
        },
        code: Some(problem.code.clone()),
    }
}

fn innermost(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), innermost)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_token_says_how_to_get_another() {
        for code in ["token_missing", "token_invalid", "token_expired"] {
            let error = of_problem(&Problem::unauthenticated(code, "The token is malformed."));
            let hint = error.hint.unwrap();
            assert!(hint.contains("platform token mint") && hint.contains("PLATFORM_TOKEN"));
            assert_eq!(error.exit, Exit::Forbidden);
        }
    }
}
