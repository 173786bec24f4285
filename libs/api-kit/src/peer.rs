//! Where a request comes from.

use std::net::IpAddr;

use http::Extensions;

/// The address at the other end of the connection. Of a proxy, where one is between: what a header says of another is
/// not believed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PeerAddress(pub IpAddr);

impl PeerAddress {
    /// As text; empty when a request did not come by a connection.
    pub(crate) fn of(extensions: &Extensions) -> String {
        let address = extensions.get::<Self>();
        address.map(|Self(address)| address.to_string()).unwrap_or_default()
    }
}
