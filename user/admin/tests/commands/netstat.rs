//! `netstat`, against files as Linux writes them.

use super::figures::{Papers, run};

#[test]
fn netstat_counts_from_the_start_and_then_by_intervals_but_gauges_stay() {
    let heads = "Tcp: RtoAlgorithm MaxConn ActiveOpens CurrEstab";
    let [first, second] = [10, 13].map(|opened| format!("{heads}\nTcp: 1 -1 {opened} 2\n"));
    let files = Papers::of([("/proc/net/snmp", &[&first, &second])]);
    let (code, out, err) = run(admin::netstat::run, "netstat -s 1", files);
    let block = |opened| {
        format!(
            "TCP\ttcpRtoAlgorithm     =     1\ttcpMaxConn          =    -1\n\
             \ttcpActiveOpens      ={opened:6}\ttcpCurrEstab        =     2\n\n"
        )
    };
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(out, block(10) + &block(3));
}

#[test]
fn netstat_shows_the_protocol_that_it_is_asked_for_and_ipv6_as_it_comes() {
    let files = || {
        Papers::of([
            (
                "/proc/net/snmp",
                &["Udp: InDatagrams\nUdp: 5\nTcp: InSegs\nTcp: 6\n"],
            ),
            (
                "/proc/net/netstat",
                &["TcpExt: ListenOverflows\nTcpExt: 4\n"],
            ),
            (
                "/proc/net/snmp6",
                &["Ip6InReceives    \t9\nIcmp6InMsgs  \t8\n"],
            ),
        ])
    };
    let (_, all, _) = run(admin::netstat::run, "netstat -s", files());
    for line in [
        "UDP\tudpInDatagrams      =     5\n",
        "TCP\ttcpInSegs           =     6\ttcpListenDrop       =     4\n",
        "IPv6\tipv6InReceives      =     9\n",
        "ICMPv6\ticmp6InMsgs         =     8\n",
    ] {
        assert!(all.contains(line), "{line} in {all}");
    }
    let (_, udp, _) = run(admin::netstat::run, "netstat -s -P udp", files());
    assert_eq!(udp, "UDP\tudpInDatagrams      =     5\n\n");
}

const TCP: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when\n\
    \x20  0: 00000000:18EB 00000000:0000 0A 000001FF:00000001 00:00000000\n\
    \x20  1: 0F02000A:18EB 0202000A:C350 01 00000010:00000005 00:00000000\n";
const UDP: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when\n\
    \x20  0: 0100007F:14E9 00000000:0000 07 00000000:00000000 00:00000000\n";
const TCP6: &str = "  sl  local_address remote_address st tx_queue rx_queue\n\
    \x20  0: 00000000000000000000000001000000:0016 00000000000000000000000000000000:0000 0A \
    00000000:00000000 00:00000000\n";

#[test]
fn netstat_shows_connections_and_with_a_those_who_wait_for_them() {
    let files = || {
        Papers::of([
            ("/proc/net/tcp", &[TCP]),
            ("/proc/net/udp", &[UDP]),
            ("/proc/net/tcp6", &[TCP6]),
        ])
    };
    let open = "10.0.2.15.6379       10.0.2.2.50000            16       5 ESTABLISHED\n";
    let (_, connected, _) = run(admin::netstat::run, "netstat -n", files());
    assert!(connected.starts_with("TCP: IPv4\n") && connected.ends_with(&format!("{open}\n")));
    assert_eq!(connected.lines().count(), 5);
    let (_, all, _) = run(admin::netstat::run, "netstat -an", files());
    for line in [
        "UDP: IPv4\n",
        "127.0.0.1.5353                            Idle\n",
        "*.6379               *.*                        0       1 LISTEN\n",
        open,
        "TCP: IPv6\n",
        "::1.22               *.*                        0       0 LISTEN\n",
    ] {
        assert!(all.contains(line), "{line} in {all}");
    }
}

#[test]
fn netstat_shows_routes_of_both_families() {
    let four = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
        eth0\t00000000\t0202000A\t0003\t0\t7\t0\t00000000\t0\t0\t0\n\
        eth0\t0002000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";
    let six = "fe800000000000000000000000000000 40 00000000000000000000000000000000 00 \
        00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth0\n\
        00000000000000000000000000000001 80 00000000000000000000000000000000 00 \
        00000000000000000000000000000000 00000000 00000001 00000000 80200001       lo\n";
    let files = Papers::of([
        ("/proc/net/route", &[four]),
        ("/proc/net/ipv6_route", &[six]),
    ]);
    let (code, out, _) = run(admin::netstat::run, "netstat -rn", files);
    assert_eq!(code, 0);
    for line in [
        "Routing Table: IPv4\n",
        "default              10.0.2.2             UG             7 eth0\n",
        "10.0.2.0/24          -                    U              0 eth0\n",
        "Routing Table: IPv6\n",
        "fe80::/64            -                    U              0 eth0\n",
    ] {
        assert!(out.contains(line), "{line} in {out}");
    }
    assert!(!out.contains("::1/128"), "{out}");
}

#[test]
fn lines_that_make_no_sense_are_passed_over() {
    let broken = "heads\n1: zz:1 0:0 0A 0:0\n\n2: 0100007F\nééééééééé:1 1:1 1 1\n";
    let files = || {
        Papers::of([
            ("/proc/net/tcp", &[broken]),
            ("/proc/net/udp6", &[broken]),
            ("/proc/net/route", &[broken]),
            ("/proc/net/snmp", &["Tcp: A B\nTcp: 1\n\nx"]),
        ])
    };
    for line in ["netstat -an", "netstat -rn", "netstat -s"] {
        let said = run(admin::netstat::run, line, files());
        assert_eq!(said.1, "", "{line}");
    }
    let (code, _, err) = run(admin::netstat::run, "netstat -rn", Papers::default());
    assert_eq!(
        (code, err.as_str()),
        (1, "netstat: /proc/net/route: no such file\n")
    );
    assert_eq!(
        run(admin::netstat::run, "netstat 1", Papers::default()).0,
        2
    );
}
