//! Section 14: `kstat`.

use super::figures::{Papers, run};

fn counters() -> Papers {
    let first = "Tcp: ActiveOpens PassiveOpens OutRsts\nTcp: 5 6 7\nUdp: InDatagrams\nUdp: 8\n";
    let second = first.replace("5 6 7", "9 6 7");
    Papers::of([
        ("/proc/net/snmp", &[first, &second]),
        ("/proc/stat", &["cpu 1 2 3 4 5\ncpu0 1 2 3 4 5\nintr 9\n"]),
        ("/proc/net/card", &["0 tx_stalls 1\n1 tx_stalls 0\n"]),
        (
            "/proc/net/stack_counters",
            &["7 vnic61 10.0.2.61 stack tcp_retransmits 3\n7 vnic61 10.0.2.61 drop no_socket 1\n"],
        ),
    ])
}

fn kstat(line: &str) -> (u8, String, String) {
    run(admin::kstat::run, line, counters())
}

/// Section 14, check 4.
#[test]
fn globs_and_regular_expressions_choose_alike() {
    let all = "tcp:0:tcp:activeOpens\t5\ntcp:0:tcp:passiveOpens\t6\ntcp:0:tcp:outRsts\t7\n";
    for line in [
        "kstat -p tcp",
        "kstat -p tcp:::*",
        "kstat -p tcp:::/.*/",
        "kstat -p /^tcp$/:/0/",
        "kstat -p t?p:0:t*p:",
        "kstat -p tcp:::/Opens$/ tcp:::outRsts",
    ] {
        assert_eq!(kstat(line), (0, all.into(), String::new()), "{line}");
    }
    let opens = kstat("kstat -p :::*Opens");
    assert_eq!(opens, kstat("kstat -p :::/Opens$/"));
    assert_eq!(opens.1.lines().count(), 2);
}

#[test]
fn statistics_have_a_class_a_list_and_an_exit_code() {
    let (_, cpus, _) = kstat("kstat -l -c misc");
    assert!(cpus.starts_with("cpu:0:sys:cpu_ticks_user\n"), "{cpus}");
    assert_eq!(cpus.lines().count(), 4);
    assert_eq!(kstat("kstat -q tcp"), (0, String::new(), String::new()));
    assert_eq!(kstat("kstat -q sctp").0, 1);
    assert_eq!(kstat("kstat -p tcp:::/(/").0, 1);
}

#[test]
fn each_ring_of_the_card_has_its_counts() {
    let both = "card:0:ring:tx_stalls\t1\ncard:1:ring:tx_stalls\t0\n";
    assert_eq!(kstat("kstat -p card"), (0, both.into(), String::new()));
}

#[test]
fn people_see_a_block_for_each_name_and_programs_json() {
    let (_, out, _) = kstat("kstat udp:::");
    let block = "module: udp                             instance: 0     \n\
                 name:   udp                             class:    mib2\n\
                 \tinDatagrams                     8\n\n";
    assert_eq!(out, block);
    let (_, out, _) = kstat("kstat -j :::/^(inDatagrams|outRsts)$/");
    let tcp = r#"{"module":"tcp","instance":0,"name":"tcp","class":"mib2","data":{"outRsts":7}}"#;
    let udp =
        r#"{"module":"udp","instance":0,"name":"udp","class":"mib2","data":{"inDatagrams":8}}"#;
    assert_eq!(out, format!("[{udp},{tcp}]\n"));
}

#[test]
fn reports_come_again_at_intervals() {
    let (code, out, _) = kstat("kstat -p tcp:::activeOpens 1 2");
    assert_eq!(
        (code, out.as_str()),
        (0, "tcp:0:tcp:activeOpens\t5\ntcp:0:tcp:activeOpens\t9\n")
    );
    assert_eq!(kstat("kstat -p tcp 0").0, 1);
}

#[test]
fn counts_of_a_stack_in_a_program_are_its_process() {
    let shown = "sietch:7:stack:tcp_retransmits\t3\n";
    let asked = kstat("kstat -p sietch:7:stack:");
    assert_eq!(asked, (0, shown.into(), String::new()));
    assert_eq!(kstat("kstat -p sietch").1.lines().count(), 2);
}
