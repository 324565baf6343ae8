use super::*;

fn address(ip: &str, len: u8) -> Prefix {
    let ip = ip.parse().expect("an address");
    Prefix { ip, len }
}

fn by(via: &str) -> Route {
    let via = via.parse().expect("an address");
    Route { to: None, via }
}

#[test]
fn version_1_gives_links_their_subnets() {
    let text = "version: 1
config:
  - type: physical
    name: eth0
    mac_address: '52:54:00:12:34:00'
    subnets:
      - type: static
        address: 192.168.1.10
        netmask: 255.255.255.0
        gateway: 192.168.1.254
        dns_nameservers: [192.168.1.1]
        routes:
          - network: 10.0.0.7
            netmask: 255.0.0.0
            gateway: 192.168.1.253
  - type: nameserver
    address: [8.8.8.8, 192.168.1.1]
    search: [example.org, 'x y']
";
    let network = read(text).expect("read").expect("said");
    let [link] = network.links.as_slice() else {
        panic!("one link");
    };
    assert_eq!(link.mac, Some([0x52, 0x54, 0, 0x12, 0x34, 0]));
    assert_eq!(link.addresses, [address("192.168.1.10", 24)]);
    let far = Route {
        to: Some(address("10.0.0.0", 8)),
        ..by("192.168.1.253")
    };
    assert_eq!(link.routes, [by("192.168.1.254"), far]);
    let servers: Vec<String> = network.servers.iter().map(ToString::to_string).collect();
    assert_eq!(servers, ["192.168.1.1", "8.8.8.8"]);
    assert_eq!(network.searched, ["example.org"]);
}

#[test]
fn version_2_gives_links_their_addresses_with_or_without_the_word_network() {
    let text = "network:
  version: 2
  ethernets:
    id0:
      match: {macaddress: 52:54:00:12:34:56}
      addresses: [10.0.0.5/24, 'fd00::5/64']
      gateway4: 10.0.0.1
      routes: [{to: default, via: 'fd00::1'}, {to: 'fd01::9/64', via: 'fd00::2'}]
      nameservers: {addresses: [10.0.0.3]}
    eth1: {dhcp4: true, mtu: 1400}
";
    let network = read(text).expect("read").expect("said");
    let [first, second] = network.links.as_slice() else {
        panic!("two links");
    };
    assert_eq!(first.mac, Some([0x52, 0x54, 0, 0x12, 0x34, 0x56]));
    assert_eq!(
        first.addresses,
        [address("10.0.0.5", 24), address("fd00::5", 64)]
    );
    assert_eq!(first.routes.len(), 3);
    assert_eq!(first.routes[..2], [by("10.0.0.1"), by("fd00::1")]);
    assert_eq!(first.routes[2].to, Some(address("fd01::", 64)));
    assert_eq!(second.name, "eth1");
    assert!(second.addresses.is_empty());
    assert_eq!(
        network.notes,
        ["network-config: eth1: mtu is not supported"]
    );
}

#[test]
fn what_is_not_said_is_nothing_and_what_is_wrong_is_a_sentence() {
    assert_eq!(read(""), Ok(None));
    assert_eq!(read("config: disabled"), Ok(None));
    assert_eq!(
        read("network: {config: disabled}"),
        Ok(None),
        "as cloud-init's own documentation has it"
    );
    for wrong in [
        "version: 3",
        "version: 2\nbonds: {}",
        "version: 2\nethernets: {a: {addresses: [10.0.0.1/33]}}",
        "version: 2\nethernets: {a: {gateway4: x}}",
        "version: 1\nconfig: [{type: bond}]",
        "version: 1\nconfig: [{type: physical, mac_address: '1:2'}]",
        "version: 1\nconfig: [{type: physical, subnets: [{type: static, address: 10.0.0.1, netmask: 255.0.255.0}]}]",
        "{",
    ] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}
