//! A hub that runs in this process: its start, its address, its end.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use super::error::CliError;
use super::interrupt::Interrupts;
use super::out::remark;
use crate::app::{AppError, Hub};
use crate::config::HubConfig;
use crate::lifecycle::DRAIN_TIMEOUT;

/// Starts a hub.
pub(super) async fn start(config: HubConfig) -> Result<Hub, CliError> {
    Hub::start(config).await.map_err(not_started)
}

/// Why a hub did not start, with what to do about it where that is known.
fn not_started(error: AppError) -> CliError {
    match error {
        AppError::Listen { address, error } if error.kind() == io::ErrorKind::AddrInUse => CliError::Hub {
            message: format!("{address} is in use by another program"),
            hint: Some("choose another address with --listen; port 0 takes a free one".to_owned()),
        },
        error => CliError::Hub { message: error.to_string(), hint: None },
    }
}

/// The address at which this machine reaches the hub.
pub(super) fn url(address: SocketAddr) -> String {
    let ip = match address.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    format!("http://{}", SocketAddr::new(ip, address.port()))
}

/// Stops a hub: lets running calls end, unless there is another Ctrl-C.
pub(super) async fn stop(hub: &Hub, interrupts: &mut Interrupts) {
    remark("stopping; Ctrl-C again does not wait for running calls");
    tokio::select! {
        () = hub.stop(DRAIN_TIMEOUT) => {}
        () = interrupts.next() => hub.stop(Duration::ZERO).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_in_use_is_told_with_what_to_do() {
        let address: SocketAddr = "127.0.0.1:7800".parse().unwrap();
        let told = |kind: io::ErrorKind| not_started(AppError::Listen { address, error: kind.into() }).to_string();
        assert_eq!(told(io::ErrorKind::AddrInUse), "127.0.0.1:7800 is in use by another program");
        assert!(told(io::ErrorKind::PermissionDenied).starts_with("cannot listen on 127.0.0.1:7800: "));
    }

    #[test]
    fn an_address_for_everybody_is_reached_at_loopback() {
        let told = |address: &str| url(address.parse().unwrap());
        assert_eq!(told("0.0.0.0:80"), "http://127.0.0.1:80");
        assert_eq!(told("[::]:80"), "http://[::1]:80");
        assert_eq!(told("192.0.2.1:80"), "http://192.0.2.1:80");
    }
}
