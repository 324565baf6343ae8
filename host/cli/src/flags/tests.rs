use qemu::Protocol;

use super::*;

fn run_flags(line: &str) -> RunFlags {
    RunFlags::of_line(line.split(' ')).expect("a valid line")
}

#[test]
fn the_programs_own_flags_are_left_to_it() {
    let flags = run_flags("sietch run -p 6380:6379 redis-server --port 6379 -v -h");
    assert_eq!(flags.program.program(), "redis-server");
    assert_eq!(flags.program.arguments(), ["--port", "6379", "-v", "-h"]);
    assert_eq!(flags.publish[0].0.host_port, 6380);
    assert!(flags.volume.is_empty());
    let python = run_flags("sietch run python3 -m http.server --name x");
    assert_eq!(
        python.program.arguments(),
        ["-m", "http.server", "--name", "x"]
    );
    assert_eq!((python.memory, python.name), (None, None));
}

#[test]
fn a_program_to_build_is_named_by_a_word_or_by_a_flag() {
    let built = |line: &str| {
        let typed = ["sietch", "build", "-t", "mine"].into_iter();
        let parsed = Cli::try_parse_from(typed.chain(line.split_whitespace())).ok()?;
        let Command::Build(flags) = parsed.command else {
            return None;
        };
        let program = match &flags.from {
            Some(program) => flags.program.with_program(program),
            None => flags.program,
        };
        Some(program.command().join(" "))
    };
    let line = Some("redis-server --save 60 1".to_string());
    assert_eq!(built("redis-server --save 60 1"), line);
    assert_eq!(built("--from redis-server -- --save 60 1"), line);
    assert_eq!(
        built("--from echo a --from b"),
        Some("echo a --from b".into())
    );
    assert_eq!(built("--from redis-server"), Some("redis-server".into()));
    assert_eq!(built(""), None);
    assert!(Cli::try_parse_from(["sietch", "run"]).is_err());
    assert!(Cli::try_parse_from(["sietch", "run", "--from", "a", "b"]).is_err());
}

#[test]
fn ports_are_written_as_in_docker() {
    let full: Publish = "127.0.0.1:53:5353/udp".parse().expect("valid");
    assert_eq!(full.0.host_ip, Ipv4Addr::LOCALHOST);
    assert_eq!((full.0.host_port, full.0.guest_port), (53, 5353));
    assert_eq!(full.0.protocol, Protocol::Udp);
    for wrong in ["80", "0:80", "a:b", "80:80/sctp", "1.2.3:80:80", "70000:80"] {
        assert!(wrong.parse::<Publish>().is_err(), "{wrong}");
    }
}

#[test]
fn memory_has_units() {
    let mib = |text: &str| text.parse::<Memory>().map(|memory| memory.mib);
    assert_eq!(mib("64M"), Ok(64));
    assert_eq!(mib("1g"), Ok(1024));
    assert_eq!(mib("32MiB"), Ok(32));
    assert_eq!(mib("33554432"), Ok(32));
    assert!(mib("64").is_err());
    assert!(mib("lots").is_err());
}

#[test]
fn addresses_are_checked() {
    let ip: Ip<Ipv4Addr> = "10.0.0.2/24,10.0.0.1".parse().expect("valid");
    assert_eq!(ip.to_string(), "10.0.0.2/24,10.0.0.1");
    assert_eq!("dhcp".parse(), Ok(Ip::<Ipv4Addr>::Automatic));
    for wrong in ["10.0.0.2.1", "10.0.0.2/33", "auto"] {
        assert!(wrong.parse::<Ip<Ipv4Addr>>().is_err(), "{wrong}");
    }
}

#[test]
fn addresses_of_ipv6_are_checked() {
    let ip: Ip<Ipv6Addr> = "fd00::15/64,fe80::1".parse().expect("valid");
    assert_eq!(ip.to_string(), "fd00::15/64,fe80::1");
    assert_eq!("auto".parse(), Ok(Ip::<Ipv6Addr>::Automatic));
    for wrong in ["fd00:15", "fd00::15/129", "10.0.0.2/24", "dhcp"] {
        assert!(wrong.parse::<Ip<Ipv6Addr>>().is_err(), "{wrong}");
    }
}

#[test]
fn networks_are_docker_s_words_a_tap_or_a_name() {
    assert_eq!("tap=tap0".parse(), Ok(NetFlag::Tap("tap0".into())));
    assert!("tap=".parse::<NetFlag>().is_err());
    assert_eq!("bridge".parse(), Ok(NetFlag::User));
    let back = OnNetwork {
        name: "back".into(),
        ..OnNetwork::default()
    };
    assert_eq!("back".parse(), Ok(NetFlag::Network(back.clone())));
    let with_options = OnNetwork {
        ip: Some([10, 89, 0, 9].into()),
        aliases: vec!["db".into(), "store".into()],
        ..back
    };
    let text = "back:ip=10.89.0.9,alias=db,alias=store";
    assert_eq!(text.parse(), Ok(NetFlag::Network(with_options.clone())));
    assert_eq!(with_options.to_string(), text);
    for wrong in [
        "back:ip=10",
        "back:mac=1",
        "back:alias=a/b",
        ":ip=10.89.0.9",
        "back:x",
    ] {
        assert!(wrong.parse::<NetFlag>().is_err(), "{wrong}");
    }
    assert!("host".parse::<NetFlag>().is_err());
}

#[test]
fn a_name_cannot_leave_its_folder() {
    for wrong in ["..", "a/b", ""] {
        assert!(parse_name(wrong).is_err(), "{wrong:?}");
    }
    assert_eq!(parse_name("redis-1"), Ok("redis-1".into()));
}

#[test]
fn words_for_the_kernel_are_keys_with_values() {
    let flags = run_flags("sietch run --nic e1000 --kernel-option frames=shuffle true");
    assert_eq!(flags.nic, NicFlag::E1000);
    assert_eq!(flags.kernel_option, [("frames".into(), "shuffle".into())]);
    assert!(run::parse_option("frames").is_err());
}

#[test]
fn a_machine_on_sockets_names_its_own_and_its_peers() {
    let flags = run_flags("sietch run --net dgram=/a,/b --mac-address 02:00:00:00:00:0a true");
    let net = NetFlag::Datagrams {
        local: "/a".into(),
        remote: "/b".into(),
    };
    assert_eq!(
        (flags.first_net().clone(), flags.mac_address),
        (net, Some(MacAddress([2, 0, 0, 0, 0, 10])))
    );
    assert!("dgram=/a".parse::<NetFlag>().is_err());
    for wrong in [
        "",
        "02:00:00:00:00",
        "2:0:0:0:0:0",
        "03:00:00:00:00:00",
        "02:00:00:00:00:+a",
    ] {
        assert!(wrong.parse::<MacAddress>().is_err(), "{wrong}");
    }
}

#[test]
fn each_command_knows_the_flags_that_its_flags_name() {
    use clap::CommandFactory;

    Cli::command().debug_assert();
}
