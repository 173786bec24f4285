//! Finds loopback addresses that nobody uses: one block `127.0.B.0/24` a set of hosts.
//!
//! Several sets may start at the same moment (tests run side by side), so looking is not enough: a
//! set holds the block's last address, bound, for as long as it lives. The kernel lets go of it
//! when the holder dies, which no lock file would.

use std::{
    io::{BufRead, BufReader},
    net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream},
    time::Duration,
};

use crate::HostError;

const BLOCKS: std::ops::RangeInclusive<u8> = 10..=199;
const HOLDER: u8 = 254;

#[derive(Debug)]
pub(crate) struct Block {
    number: u8,
    _held: TcpListener,
}

impl Block {
    /// The first block whose addresses are all free on `port`.
    pub fn hold(count: usize, port: u16) -> Result<Self, HostError> {
        BLOCKS
            .into_iter()
            .find_map(|number| Self::try_hold(number, count, port))
            .ok_or(HostError::NoAddresses { port })
    }

    /// The address of the host at `index`, counted from 0.
    pub fn address(&self, index: u8) -> Ipv4Addr {
        address(self.number, index)
    }

    fn try_hold(number: u8, count: usize, port: u16) -> Option<Self> {
        let held = TcpListener::bind((Ipv4Addr::new(127, 0, number, HOLDER), port)).ok()?;
        let last = u8::try_from(count).ok()?;
        let free = (0..last).all(|index| TcpListener::bind((address(number, index), port)).is_ok());
        free.then_some(Self { number, _held: held })
    }
}

fn address(block: u8, index: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, block, index + 1)
}

/// True when an SSH server greets at the address.
pub(crate) fn greets(address: Ipv4Addr, port: u16) -> bool {
    let patience = Duration::from_secs(2);
    let Ok(stream) = TcpStream::connect_timeout(&SocketAddrV4::new(address, port).into(), patience) else {
        return false;
    };
    let mut greeting = String::new();
    stream.set_read_timeout(Some(patience)).is_ok()
        && BufReader::new(stream).read_line(&mut greeting).is_ok()
        && greeting.starts_with("SSH-2.0-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_sets_of_hosts_never_share_a_block() {
        let first = Block::hold(3, 48_122).unwrap();
        let second = Block::hold(3, 48_122).unwrap();
        assert_ne!(first.address(0), second.address(0));
        assert_eq!(first.address(2).octets()[3], 3);
    }

    #[test]
    fn a_block_with_a_taken_address_is_passed_over() {
        let taken = Block::hold(1, 48_123).unwrap().address(1);
        let _listener = TcpListener::bind((taken, 48_123)).unwrap();
        let block = Block::hold(2, 48_123).unwrap();
        assert_ne!(block.address(1), taken);
    }

    #[test]
    fn silence_is_no_greeting() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        assert!(!greets(Ipv4Addr::LOCALHOST, port));
    }
}
