//! Commands without walls, and tenants: one excludes the other.

use std::path::PathBuf;

use hermes_server::app::{App, StartError, Surroundings};
use hermes_server::config::Isolation;
use hermes_server::store::tenants;

use crate::harness::on_both;

#[test]
fn a_server_with_a_second_tenant_does_not_start_without_isolation() {
    on_both(async |mut place| {
        place.config.terminal.isolation = Isolation::None;
        let server = place.start().await;
        tenants::ensure(server.engine.store(), "second").await.unwrap();
        server.stop().await;
        let around = Surroundings {
            clock: place.clock.clone(),
            probe: None,
            exec_program: PathBuf::from(env!("CARGO_BIN_EXE_hermes-server")),
            environment: Vec::new(),
        };
        let refused = App::start(&place.config, around).await.err();
        assert!(matches!(refused, Some(StartError::Unconfined(2))), "{refused:?}");
        let told = refused.unwrap().to_string();
        assert!(told.contains("terminal.isolation") && told.contains("none"), "{told}");
    });
}
