//! The audits of the three services, and the check of their chains.
//!
//! The chain is checked here, from what the API shows, and no service is believed: each hash is computed anew.

use std::fmt::Write as _;

use audit::{AuditPage, AuditQuery, Broken, ChainHead, ChainPage, HeadHash, Verifier};
use client_kit::ClientError;
use serde::Serialize;

use crate::args::{AuditCommand, KnownHead, Service};
use crate::error::CliError;
use crate::exit::Exit;
use crate::platform::Platform;
use crate::printer::Printer;

/// Links read at once.
const PAGE: u32 = 1000;

pub async fn run(what: &AuditCommand, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    let AuditCommand::Verify { service, known_head } = what;
    let services = if service.is_empty() { &Service::ALL[..] } else { service };
    let mut findings = Vec::new();
    for service in services {
        let known = known_head.iter().filter(|known| known.service == *service);
        findings.push(verify(platform, *service, known).await?);
    }
    printer.value(&findings, || text(&findings));
    let holds = findings.iter().all(|finding| finding.holds);
    Ok(if holds { Exit::Success } else { Exit::Untrue })
}

/// What was found of one service's chain.
#[derive(Debug, Serialize)]
struct Finding {
    service: Service,
    holds: bool,
    /// Links that were followed.
    chained: i64,
    /// Facts whose turn is still to come.
    waiting: i64,
    /// Where the chain ends: worth keeping elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<HeadHash>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
}

async fn verify(
    platform: &Platform,
    service: Service,
    known: impl Iterator<Item = &KnownHead>,
) -> Result<Finding, CliError> {
    let head = head(platform, service).await?;
    let mut verifier = Verifier::new(known.map(|known| known.head).chain(head.head));
    let fault = follow(platform, service, &mut verifier, &head).await?.err();
    Ok(Finding {
        service,
        holds: fault.is_none(),
        chained: verifier.after(),
        waiting: head.waiting,
        head: verifier.end(),
        fault: fault.map(|fault| fault.to_string()),
    })
}

/// The whole chain, link by link.
async fn follow(
    platform: &Platform,
    service: Service,
    verifier: &mut Verifier,
    head: &ChainHead,
) -> Result<Result<(), Broken>, CliError> {
    loop {
        let page = chain(platform, service, verifier.after()).await?;
        for link in &page.links {
            if let Err(broken) = verifier.follow(link) {
                return Ok(Err(broken));
            }
        }
        if page.next_after.is_none() {
            return Ok(verifier.end_at(head));
        }
    }
}

fn text(findings: &[Finding]) -> String {
    let mut out = String::new();
    for finding in findings {
        let name = finding.service.as_str();
        match (&finding.fault, &finding.head) {
            (Some(fault), _) => {
                let _ = writeln!(
                    out,
                    "✘ {name}: the audit does not hold after link {}: {fault}",
                    finding.chained
                );
            }
            (None, Some(head)) => {
                let _ = writeln!(out, "✔ {name}: {} facts, each as it was chained", finding.chained);
                let _ = writeln!(out, "    head {name}:{}:{}", head.sequence, head.hash);
            }
            (None, None) => {
                let _ = writeln!(out, "✔ {name}: nothing is chained yet");
            }
        }
        if finding.waiting > 0 {
            let _ = writeln!(out, "    {} wait for their place", finding.waiting);
        }
    }
    out.truncate(out.trim_end().len());
    out
}

/// One page of a service's audit.
///
/// # Errors
/// The service refused, or was not reached.
pub async fn page(platform: &Platform, service: Service, query: &AuditQuery) -> Result<AuditPage, ClientError> {
    match service {
        Service::ResourceCatalog => platform.catalog.audit_facts(query).await,
        Service::ControlPlane => {
            let query = control_plane_api::PageQuery {
                cursor: query.cursor.clone(),
                limit: query.limit,
            };
            platform.control.audit_facts(&query).await
        }
        Service::ExecutionPlane => platform.execution.audit_facts(query).await,
    }
}

async fn chain(platform: &Platform, service: Service, after: i64) -> Result<ChainPage, ClientError> {
    match service {
        Service::ResourceCatalog => platform.catalog.audit_chain(after, PAGE).await,
        Service::ControlPlane => platform.control.audit_chain(after, PAGE).await,
        Service::ExecutionPlane => platform.execution.audit_chain(after, PAGE).await,
    }
}

async fn head(platform: &Platform, service: Service) -> Result<ChainHead, ClientError> {
    match service {
        Service::ResourceCatalog => platform.catalog.audit_head().await,
        Service::ControlPlane => platform.control.audit_head().await,
        Service::ExecutionPlane => platform.execution.audit_head().await,
    }
}
