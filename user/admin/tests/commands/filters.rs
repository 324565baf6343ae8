//! What `dladm` shows of filters and of programs that own links' frames.

use linkctl::{DoorbellRow, FilterRow, Rights};

use crate::Host;

fn filter(id: u32, queue: Option<u16>) -> FilterRow {
    FilterRow {
        id,
        queue,
        process: queue.map(|_| 77),
        user: queue.map(|_| 65534),
        receives: "local_ip=10.0.0.1,transport=tcp,local_port=6379".into(),
        sends: "local_ip=fd00::1".into(),
        hits: 12,
        refused: 3,
    }
}

#[test]
fn filters_are_shown_with_who_has_them_and_what_they_admit() {
    let host = Host::new();
    host.machine.borrow_mut().filters = vec![filter(4, Some(2)), filter(9, None)];
    assert_eq!(
        host.prints("dladm show-filter -p -o all net0"),
        "4:net0:2:77:65534:12:3:local_ip=10.0.0.1,transport=tcp,local_port=6379:local_ip=fd00\\:\\:1\n\
         9:net0:--:--:--:12:3:local_ip=10.0.0.1,transport=tcp,local_port=6379:local_ip=fd00\\:\\:1\n"
    );
    let head = host.prints("dladm show-filter");
    let columns: Vec<&str> = head
        .lines()
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    assert_eq!(
        columns,
        [
            "ID", "LINK", "QUEUE", "PID", "UID", "HITS", "TXDROP", "RX", "TX"
        ]
    );
    host.fails("dladm show-filter net7");
}

#[test]
fn an_administrator_deletes_a_filter_and_nobody_else_does() {
    let host = Host::new();
    host.machine.borrow_mut().filters = vec![filter(4, Some(2)), filter(9, None)];
    host.machine.borrow_mut().rights = Rights::Look;
    assert!(
        host.fails("dladm delete-filter net0 4")
            .contains("only the administrator")
    );
    host.machine.borrow_mut().rights = Rights::Change;
    host.prints("dladm delete-filter net0 4");
    assert_eq!(host.prints("dladm show-filter -p -o id"), "9\n");
    assert!(
        host.fails("dladm delete-filter net0 4")
            .contains("no filter of that number")
    );
    host.fails("dladm delete-filter net7 9");
}

#[test]
fn doorbells_are_shown_with_their_state_and_how_full_the_rings_are() {
    let host = Host::new();
    let armed = DoorbellRow {
        queue: 0,
        process: 77,
        is_armed: true,
        wakes: 5,
        rx: Some(1),
        fill: Some(2),
        tx: None,
        completion: None,
    };
    let polling = DoorbellRow {
        queue: 3,
        is_armed: false,
        ..armed.clone()
    };
    host.machine.borrow_mut().doorbells = vec![armed, polling];
    assert_eq!(
        host.prints("dladm show-doorbell -p -o all net0"),
        "net0:0:77:armed:5:1:2:--:--\nnet0:3:77:polling:5:1:2:--:--\n"
    );
}
