//! The encoding keeps what it is given and refuses everything else.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};

use link::flow::{FlowError, FlowProps, Kind, Rule};
use link::links::{Class, LinkError, MacOrigin};
use link::prefix::IpPrefix;
use link::props::PropError;
use link::vlan::VlanId;
use wire::MacAddr;

use crate::*;

const MAC: MacAddr = MacAddr([2, 8, 0x20, 1, 2, 3]);

fn setting(name: &str, value: &str) -> Setting {
    Setting {
        name: name.into(),
        value: value.into(),
    }
}

fn requests() -> Vec<Request> {
    let (link, flow, name) = (|| "net0".into(), || "web".into(), || "mtu".into());
    let vid = VlanId::new(4094);
    let vnic = |mac| {
        Request::CreateVnic(NewVnic {
            name: "vnic1".into(),
            over: link(),
            mac,
            vid,
            settings: vec![setting("mtu", "1400"), setting("maxbw", "")],
        })
    };
    vec![
        Request::Links { from: 1023 },
        Request::Groups { link: link() },
        Request::Props { link: link() },
        Request::Statistics { link: link() },
        Request::Kstats {
            link: link(),
            from: 64,
        },
        Request::Drops {
            link: link(),
            ring: 7,
        },
        Request::Flows { from: 0 },
        Request::FlowStatistics { flow: flow() },
        vnic(NewMac::Given(MAC)),
        vnic(NewMac::Random { prefix: None }),
        vnic(NewMac::Random {
            prefix: Some([2, 3, 4]),
        }),
        Request::CreateVlan {
            name: None,
            over: link(),
            vid: vid.expect("valid"),
        },
        Request::CreateEtherstub { name: link() },
        Request::Delete {
            link: link(),
            class: Class::Vnic,
        },
        Request::SetProp {
            link: link(),
            setting: setting("allowed-ips", "fe80::/10,10.0.0.1"),
        },
        Request::ResetProp {
            link: link(),
            name: name(),
        },
        Request::AddFlow {
            name: flow(),
            link: link(),
            attributes: "transport=tcp,local_port=80".into(),
            settings: Vec::new(),
        },
        Request::RemoveFlow { flow: flow() },
        Request::RemoveFlows { link: link() },
        Request::SetFlowProp {
            flow: flow(),
            setting: setting("maxbw", "10M"),
        },
        Request::ResetFlowProp {
            flow: flow(),
            name: name(),
        },
    ]
}

fn filter_requests() -> [Request; 3] {
    let link = || "vnic1".into();
    [
        Request::Filters { link: link() },
        Request::DeleteFilter {
            link: link(),
            id: u32::MAX,
        },
        Request::Doorbells { link: link() },
    ]
}

fn filter_row(words: &str) -> FilterRow {
    FilterRow {
        id: u32::MAX,
        queue: Some(15),
        process: None,
        user: Some(65534),
        receives: words.into(),
        sends: words.into(),
        hits: u64::MAX,
        refused: 1,
    }
}

fn doorbell_row() -> DoorbellRow {
    DoorbellRow {
        queue: 15,
        process: 7,
        is_armed: true,
        wakes: u64::MAX,
        rx: None,
        fill: Some(65536),
        tx: Some(0),
        completion: Some(1),
    }
}

fn link_row(name: String) -> LinkRow {
    LinkRow {
        over: Some(name.clone()),
        device: Some(name.clone()),
        name,
        class: Class::Vnic,
        mtu: 1500,
        is_up: Some(true),
        speed_mbps: u64::MAX,
        mac: MAC,
        mac_origin: MacOrigin::Random,
        vid: VlanId::new(1),
        is_held: true,
    }
}

fn kstat_block(module: String, rows: usize) -> KstatBlock {
    let row = Kstat {
        name: "chainunder10".into(),
        value: u64::MAX,
    };
    KstatBlock {
        module,
        name: "mac_rx_hwlane10_fanout10".into(),
        rows: vec![row; rows],
    }
}

fn drop_row(link: String) -> DropRow {
    let end = "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535";
    DropRow {
        serial: u64::MAX,
        time_ns: 1,
        link: Some(link),
        reason: "dhcpspoofed".into(),
        frames: 1,
        len: 1514,
        from: end.into(),
        to: end.into(),
        protocol: Some(17),
        ether_type: 0x86dd,
    }
}

fn address_requests() -> [Request; 2] {
    [
        Request::AddAddress(AddressOf {
            link: "vnic1".into(),
            address: IpPrefix::parse("10.0.2.51/24").expect("valid"),
        }),
        Request::RemoveRoute(RouteOf {
            link: "vnic1".into(),
            destination: IpPrefix::parse("2001:db8::/32").expect("valid"),
            router: Some(core::net::Ipv6Addr::LOCALHOST.into()),
        }),
    ]
}

fn refusals() -> [Refusal; 13] {
    [
        Refusal::Malformed,
        Refusal::TooLong,
        Refusal::NotPermitted,
        Refusal::NoSuchLink { name: "a0".into() },
        Refusal::NotA { class: Class::Vlan },
        Refusal::Setting {
            name: "mtu".into(),
            error: LinkError::Prop(PropError::TooMany { most: 32 }),
        },
        Refusal::Setting {
            name: "cpus".into(),
            error: LinkError::Prop(PropError::NoCpu),
        },
        Refusal::Setting {
            name: "cpus".into(),
            error: LinkError::Prop(PropError::NoSuchCpu { cpus: 2 }),
        },
        Refusal::Link(LinkError::Flow(FlowError::MixedKinds {
            existing: Kind::DsField,
        })),
        Refusal::Link(LinkError::Place(link::group::PlaceError::Nic(
            hal::NicError::Failed,
        ))),
        Refusal::Link(LinkError::NotPromiscuous(link::promisc::NotSet)),
        Refusal::Address(crate::AddressError::NoRouter),
        Refusal::NoSuchFilter,
    ]
}

fn answers() -> Vec<Answer> {
    let prefix = |text| IpPrefix::parse(text).expect("valid");
    let rules = [
        Rule::LocalIp(prefix("10.0.0.0/8")),
        Rule::RemoteIp(prefix("2001:db8::1")),
        Rule::Transport(6),
        Rule::LocalPort(6, 443),
        Rule::RemotePort(17, 53),
        Rule::DsField {
            value: 1,
            mask: 0xff,
        },
    ];
    let mut props = FlowProps::default();
    props.set("maxbw", "10M").expect("valid");
    let row = |rule| FlowRow {
        name: "web".into(),
        link: "net0".into(),
        rule,
        props,
    };
    let mut all = vec![
        Answer::Done,
        Answer::Created {
            name: "vnic1".into(),
            mac: MAC,
        },
        Answer::Links {
            rows: vec![link_row("net0".into())],
            next: Some(128),
        },
        Answer::Groups(vec![GroupRow {
            is_tx: false,
            first: 1,
            rings: 3,
            cpus: vec![Some(2), None, Some(u32::MAX)],
            clients: vec!["net0".into()],
        }]),
        Answer::Props(vec![PropRow {
            name: "mtu".into(),
            is_read_only: true,
            value: "1500".into(),
            default: "--".into(),
            possible: "68-1500".into(),
        }]),
        Answer::Statistics([1, 2, 3, 4, 5, u64::MAX]),
        Answer::FlowStatistics([0; 6]),
        Answer::Drops {
            rows: vec![drop_row("vnic1".into())],
            next: Some(1),
        },
        Answer::Kstats {
            blocks: vec![kstat_block("net0".into(), 2)],
            next: Some(64),
        },
        Answer::Flows {
            rows: rules.into_iter().map(row).collect(),
            next: None,
        },
        Answer::Filters(vec![filter_row("local_ip=::1"), filter_row("")]),
        Answer::Doorbells(vec![doorbell_row()]),
    ];
    all.extend(refusals().map(Answer::Refused));
    all
}

#[test]
fn every_message_is_read_back_as_it_was_written() {
    let others = address_requests().into_iter().chain(filter_requests());
    for request in requests().into_iter().chain(others) {
        let bytes = request.encode().expect("short");
        assert_eq!(Request::decode(&bytes), Ok(request));
    }
    for answer in answers() {
        let bytes = answer.encode().expect("short");
        assert_eq!(Answer::decode(&bytes), Ok(answer));
    }
}

#[test]
fn a_message_that_is_cut_short_or_goes_on_is_malformed() {
    for bytes in requests().iter().filter_map(|one| one.encode().ok()) {
        for cut in 0..bytes.len() {
            assert_eq!(Request::decode(&bytes[..cut]), Err(Malformed));
        }
        let more = [&bytes[..], &[0]].concat();
        assert_eq!(Request::decode(&more), Err(Malformed));
    }
    for bytes in answers().iter().filter_map(|one| one.encode().ok()) {
        for cut in 0..bytes.len() {
            assert_eq!(Answer::decode(&bytes[..cut]), Err(Malformed));
        }
    }
}

#[test]
fn what_the_link_layer_would_not_make_is_malformed() {
    let vlan = |vid: [u8; 2]| [&[1, 7, 0, 1, 0, b'a'][..], &vid].concat();
    let vid = VlanId::new(2).expect("valid");
    let expected = Request::CreateVlan {
        name: None,
        over: "a".into(),
        vid,
    };
    assert_eq!(Request::decode(&vlan([2, 0])), Ok(expected));
    for bad in [[0, 0], [0xff, 0x0f], [0, 0x10]] {
        assert_eq!(Request::decode(&vlan(bad)), Err(Malformed));
    }
    let version = [2, 0, 0, 0];
    assert_eq!(Request::decode(&version), Err(Malformed));
    let not_a_bool = [1, 7, 2, 1, 0, b'a', 2, 0];
    assert_eq!(Request::decode(&not_a_bool), Err(Malformed));
    let latin = [1, 1, 1, 0, 0xe4];
    assert_eq!(Request::decode(&latin), Err(Malformed));
}

#[test]
fn texts_have_no_control_characters_and_an_end() {
    let props = |link: String| Request::Props { link };
    for bad in ["a\n0", "\u{1b}[2J", "a\t", "\u{85}", "\0"] {
        assert_eq!(props(bad.to_string()).encode(), Err(TooLong), "{bad:?}");
        let len = bad.len() as u8;
        let bytes = [&[1, 2, len, 0], bad.as_bytes()].concat();
        assert_eq!(Request::decode(&bytes), Err(Malformed), "{bad:?}");
    }
    let longest = props("a".repeat(TEXT_BYTES_MAX));
    assert!(longest.encode().is_ok());
    let long = props("a".repeat(TEXT_BYTES_MAX + 1));
    assert_eq!(long.encode(), Err(TooLong));
    let mut bytes = [&[1, 2][..], &(TEXT_BYTES_MAX as u16 + 1).to_le_bytes()].concat();
    bytes.resize(bytes.len() + TEXT_BYTES_MAX + 1, b'a');
    assert_eq!(Request::decode(&bytes), Err(Malformed));
}

#[test]
fn a_list_that_claims_more_than_its_message_holds_is_malformed() {
    let claims = [1, 3, 0xff, 0xff];
    assert_eq!(Answer::decode(&claims), Err(Malformed));
    let mut long = vec![1, 3, 0xff, 0xff];
    long.resize(MESSAGE_BYTES_MAX + 1, 0);
    assert_eq!(Answer::decode(&long), Err(Malformed));
}

#[test]
fn the_longest_page_fits_in_a_message() {
    let rows = (0..PAGE_LINKS).map(|number| link_row(format!("{number:a>31}")));
    let links = Answer::Links {
        rows: rows.collect(),
        next: None,
    };
    assert!(links.encode().is_ok());
    let name = "n".repeat(31);
    let row = FlowRow {
        name: "f".repeat(127),
        link: name.clone(),
        rule: Rule::LocalIp(IpPrefix::parse("::1").expect("valid")),
        props: FlowProps::default(),
    };
    let flows = Answer::Flows {
        rows: vec![row; 64],
        next: None,
    };
    assert!(flows.encode().is_ok());
    let block = kstat_block(name.clone(), 24);
    let kstats = Answer::Kstats {
        blocks: vec![block; PAGE_BLOCKS],
        next: None,
    };
    assert!(kstats.encode().is_ok());
    let events = link::counters::DropReason::ALL.len() * link::lane::EVENTS_MAX;
    let drops = Answer::Drops {
        rows: vec![drop_row(name.clone()); events],
        next: None,
    };
    assert!(drops.encode().is_ok());
    let groups = (0..32).map(|first| GroupRow {
        is_tx: false,
        first,
        rings: 1,
        cpus: vec![Some(0)],
        clients: vec![name.clone(); 32],
    });
    assert!(Answer::Groups(groups.collect()).encode().is_ok());
    let long = |most: usize| PropRow {
        name: "secondary-macs".into(),
        is_read_only: false,
        value: "v".repeat(most),
        default: "--".into(),
        possible: "p".repeat(64),
    };
    let mut props = vec![long(2048); 14];
    props.push(long(TEXT_BYTES_MAX));
    assert!(Answer::Props(props).encode().is_ok());
    let end = "=ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/127,transport=sctp,local_port=65534-65535";
    let filters = vec![filter_row(&end.repeat(2)); link::filters::FILTERS_MAX];
    assert!(Answer::Filters(filters).encode().is_ok());
}

#[test]
fn only_what_changes_something_is_a_change() {
    let lookers = requests().iter().filter(|one| !one.is_change()).count();
    assert_eq!(lookers, 8);
    let changes = filter_requests().map(|one| one.is_change());
    assert_eq!(changes, [false, true, false]);
}
