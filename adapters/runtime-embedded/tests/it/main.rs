//! The embedded runtime keeps every rule of the port.

use std::sync::Arc;

use runtime_embedded::EmbeddedRuntime;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_embedded_runtime_passes_the_conformance_suite() {
    control_plane_ports::conformance::runtime::suite(|| Arc::new(EmbeddedRuntime::default())).await;
}
