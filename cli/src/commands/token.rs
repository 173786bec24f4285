use std::path::Path;

use chrono::{TimeDelta, Utc};
use identity::{Minter, PrivateKey, Role};
use kernel::id::OrganizationId;
use serde_json::json;

use crate::args::TokenCommand;
use crate::context::Session;
use crate::error::CliError;
use crate::exit::Exit;
use crate::printer::Printer;

/// A token cannot be called back, so it does not hold for ever.
const MOST_HOURS: u32 = 720;

fn lifetime(hours: u32) -> Result<TimeDelta, CliError> {
    if (1..=MOST_HOURS).contains(&hours) {
        return Ok(TimeDelta::hours(i64::from(hours)));
    }
    Err(CliError::usage(format!(
        "--hours {hours}: a token holds at least 1 hour and at most {MOST_HOURS} (30 days)"
    ))
    .hint("mint the next one when it has run out"))
}

pub fn run(what: &TokenCommand, context: Option<&Path>, printer: Printer) -> Result<Exit, CliError> {
    let TokenCommand::Mint {
        subject,
        role,
        hours,
        organization,
    } = what;
    let lifetime = lifetime(*hours)?;
    let session = Session::find(context)?;
    let Some(key) = &session.context.issuer_key else {
        return Err(CliError::usage("this context names no issuer key")
            .hint("tokens are minted where 'platform up' keeps its key"));
    };
    let path = session.source.parent().unwrap_or_else(|| Path::new(".")).join(key);
    let key = PrivateKey::load(&path).map_err(|error| CliError::new(Exit::Forbidden, error.to_string()))?;
    let roles = role
        .iter()
        .map(|word| word.parse::<Role>().map_err(|error| CliError::usage(error.to_string())))
        .collect::<Result<Vec<_>, _>>()?;
    if let Some(role) = roles.iter().find(|role| matches!(role, Role::Service | Role::Runner)) {
        return Err(CliError::usage(format!("{role} is no role of a person"))
            .hint("people are viewer, operator, approver or admin; services and runners have keys of their own"));
    }
    let organization = organization
        .or(session.context.organization_id)
        .map(OrganizationId)
        .ok_or_else(|| CliError::usage("no organization is known").hint("name one with --organization"))?;
    let now = Utc::now();
    let token = Minter::new(key, "local")
        .mint(subject, organization, roles, lifetime, now)
        .map_err(|error| CliError::usage(error.to_string()))?;
    printer.value(
        &json!({"token": token.expose(), "subject": subject, "expires_at": now + lifetime}),
        || token.expose().to_owned(),
    );
    Ok(Exit::Success)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_holds_from_an_hour_to_thirty_days() {
        assert_eq!(lifetime(1).unwrap(), TimeDelta::hours(1));
        assert_eq!(lifetime(720).unwrap(), TimeDelta::days(30));
        for hours in [0, 721, u32::MAX] {
            assert!(lifetime(hours).unwrap_err().message.contains("at most 720"));
        }
    }
}
