//! Which network addresses are on the public internet. Everything else is refused, whatever name led there.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address may be connected to.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !(matches!(a, 0 | 10 | 127 | 224..)
        || a == 100 && (64..128).contains(&b)
        || a == 169 && b == 254
        || a == 172 && (16..32).contains(&b)
        || a == 192 && b == 168
        || a == 192 && b == 0 && matches!(c, 0 | 2)
        || a == 192 && b == 88 && c == 99
        || a == 198 && matches!(b, 18 | 19)
        || a == 198 && b == 51 && c == 100
        || a == 203 && b == 0 && c == 113)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(inner) = embedded(address) {
        return is_public_v4(inner);
    }
    let [first, second, ..] = address.segments();
    // Only global unicast, without documentation, benchmarking and protocol ranges.
    (first & 0xe000) == 0x2000
        && !(first == 0x2001 && (second < 0x200 || second == 0xdb8))
        && first != 0x3fff
        && !(first == 0x2620 && second == 0x4f && address.segments()[2] == 0x8000)
}

/// The IPv4 address inside a mapped, compatible, translated, 6to4 or Teredo address.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let all = address.segments();
    let [first, second, third, .., high, low] = all;
    let joined = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match all {
        [0, 0, 0, 0, 0, 0xffff | 0, ..] | [0, 0, 0, 0, 0xffff, 0, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => {
            Some(joined(high, low))
        }
        [0x64, 0xff9b, 1, ..] => Some(Ipv4Addr::UNSPECIFIED),
        _ if first == 0x2002 => Some(joined(second, third)),
        [0x2001, 0, ..] => Some(joined(!high, !low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn public(address: &str) -> bool {
        is_public(address.parse().expect("an address"))
    }

    #[test]
    fn h_8_only_public_addresses_pass() {
        for address in [
            "1.1.1.1",
            "140.82.121.3",
            "172.15.0.1",
            "172.32.0.1",
            "100.63.0.1",
            "100.128.0.1",
            "2606:4700::1111",
            "2a00:1450::1",
        ] {
            assert!(public(address), "{address}");
        }
        for address in [
            "0.0.0.0",
            "10.1.2.3",
            "127.0.0.1",
            "127.255.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "192.0.0.1",
            "192.0.2.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "100.64.0.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::10.0.0.1",
            "::ffff:0:10.0.0.1",
            "64:ff9b::a00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2001:0:4136:e378:8000:63bf:80ff:fffe",
            "fe80::1",
            "fc00::1",
            "fd12:3456::1",
            "fec0::1",
            "ff02::1",
            "2001:db8::1",
            "100::1",
            "3fff::1",
        ] {
            assert!(!public(address), "{address}");
        }
        assert!(public("::ffff:1.1.1.1"));
        assert!(public("64:ff9b::101:101"));
    }
}
