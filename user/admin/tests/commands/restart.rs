//! Section 2, check 7: what outlasts a restart.

use std::fs;

use crate::Host;

#[test]
fn what_is_not_temporary_is_there_after_a_restart() {
    let mut host = Host::new();
    host.prints("dladm create-etherstub stub0");
    host.prints("dladm create-vnic -l stub0 -p mtu=1400,cpus=0,1 vnic1");
    host.prints("dladm create-vnic -l net0 -v 7 vnic2");
    host.prints("dladm create-vlan -l net0 -v 2");
    host.prints("dladm set-linkprop -p maxbw=100M net0");
    host.prints("dladm set-linkprop -p mtu=1300 vnic1");
    host.prints("flowadm add-flow -l vnic1 -a transport=tcp,local_port=80 -p maxbw=10M web");
    host.prints("flowadm set-flowprop -p priority=low web");
    host.prints("dladm create-etherstub -t stub1");
    host.prints("dladm set-linkprop -t -p priority=low vnic1");
    host.prints("flowadm add-flow -t -l net0 -a transport=udp udp1");
    host.prints("dladm create-vnic -l net0 gone1");
    host.prints("dladm delete-vnic gone1");
    host.prints("dladm set-linkprop -p priority=low vnic2");
    host.prints("dladm reset-linkprop -p priority vnic2");
    let address = host.prints("dladm show-vnic -p -o macaddress vnic1");
    host.restart();
    assert_eq!(host.prints("dladm show-link -p -o link"), "net0\n");
    assert_eq!(host.prints("dladm restore"), "");
    let links = host.prints("dladm show-link -p -o link,class,mtu,over");
    let expected = concat!(
        "net0:phys:1500:--\n",
        "stub0:etherstub:9000:--\n",
        "vnic1:vnic:1300:stub0\n",
        "vnic2:vnic:1500:net0\n",
        "net2000:vlan:1500:net0\n",
    );
    assert_eq!(links, expected);
    assert_eq!(
        host.prints("dladm show-vnic -p -o macaddress vnic1"),
        address
    );
    let shown = host.prints("dladm show-linkprop -c -o value -p maxbw net0");
    assert_eq!(shown, "100\n");
    let shown = host.prints("dladm show-linkprop -c -o value -p cpus,priority vnic1");
    assert_eq!(shown, "0,1\nhigh\n");
    assert_eq!(
        host.prints("flowadm show-flow -p -o flow,lport"),
        "web:80\n"
    );
    assert_eq!(
        host.prints("flowadm show-flowprop -c -o value"),
        "10\nlow\n"
    );
}

#[test]
fn persistent_views_show_what_is_kept_and_not_what_is() {
    let host = Host::new();
    host.prints("dladm create-vnic -l net0 -m 2:0:0:0:0:1 vnic1");
    host.prints("dladm create-vnic -t -l net0 vnic2");
    host.prints("dladm set-linkprop -p mtu=1400 vnic1");
    host.prints("dladm set-linkprop -t -p mtu=1300 vnic1");
    host.prints("flowadm add-flow -t -l vnic1 -a transport=tcp tcp1");
    let shown = host.prints("dladm show-link -P -p -o all");
    assert_eq!(shown, "vnic1:vnic:--:--:--:net0\n");
    let shown = host.prints("dladm show-vnic -P -p -o link,macaddress");
    assert_eq!(shown, "vnic1:02\\:00\\:00\\:00\\:00\\:01\n");
    let kept = host.prints("dladm show-linkprop -P -c -o value -p mtu,maxbw vnic1");
    assert_eq!(kept, "1400\n--\n");
    assert_eq!(host.prints("flowadm show-flow -P"), "");
    assert!(
        host.fails("dladm show-link -P vnic2")
            .contains("no link vnic2")
    );
}

#[test]
fn a_card_that_is_gone_is_flagged() {
    let host = Host::new();
    let file = host.root.join(admin::keep::FILE);
    fs::create_dir_all(file.parent().expect("a folder")).expect("made");
    fs::write(
        &file,
        "linkprop\tnet7\tmtu\t1400\nlinkprop\tnet0\tmtu\t1400\n",
    )
    .expect("written");
    let shown = host.prints("dladm show-phys -P -p -o link,flags");
    assert_eq!(shown, "net0:-----\nnet7:r----\n");
}

#[test]
fn restoring_goes_on_after_what_fails_and_says_so() {
    let mut host = Host::new();
    host.prints("dladm create-vnic -l net0 -m 2:0:0:0:0:1 vnic1");
    host.prints("dladm create-etherstub stub0");
    host.prints("dladm create-vnic -l stub0 vnic2");
    host.restart();
    host.prints("dladm create-vnic -t -l net0 -m 2:0:0:0:0:1 other1");
    let (code, _, err) = host.run("dladm restore");
    assert_eq!(code, 1);
    assert!(
        err.contains("vnic1") && err.contains("1 records could not"),
        "{err}"
    );
    assert_eq!(host.prints("dladm show-vnic -p -o link"), "other1\nvnic2\n");
}

#[test]
fn a_change_that_cannot_be_kept_is_made_and_complained_about() {
    let host = Host::new();
    fs::write(&host.root, "a file where a folder should be").expect("written");
    let (code, _, err) = host.run("dladm create-etherstub stub0");
    assert_eq!(code, 1);
    assert!(err.contains("only until the next restart"), "{err}");
    host.prints("dladm create-etherstub -t stub1");
    let links = host.prints("dladm show-link -p -o link");
    assert_eq!(links, "net0\nstub0\nstub1\n");
    fs::remove_file(&host.root).expect("there");
    let file = host.root.join(admin::keep::FILE);
    fs::create_dir_all(file.parent().expect("a folder")).expect("made");
    fs::write(&file, "etherstub\tstub0\naggr\taggr0\n").expect("written");
    let err = host.fails("dladm show-link -P");
    assert!(err.contains("datalink.conf:2: no record of ours"), "{err}");
}

#[test]
fn addresses_and_routes_are_there_after_a_restart() {
    let mut host = Host::new();
    host.prints("dladm create-vnic -l net0 -m 2:0:0:0:0:1 vnic1");
    host.prints("ipadm create-addr -a 10.0.2.51/24 vnic1");
    host.prints("ipadm create-addr -a 2001:db8::1/64 vnic1");
    host.prints("ipadm create-route -d 10.9.0.0/16 -g 10.0.2.2 vnic1");
    host.prints("ipadm create-route -d 10.8.0.0/16 vnic1");
    host.prints("ipadm create-addr -t -a 10.7.0.1/24 vnic1");
    host.prints("ipadm delete-addr -a 2001:db8::1/64 vnic1");
    host.prints("ipadm delete-route -d 10.8.0.0/16 vnic1");
    let refused = host.fails("ipadm create-addr -a 10.0.2.51/24 vnic1");
    assert_eq!(refused, "ipadm: it is there already\n");
    let refused = host.fails("ipadm create-addr -a 10.0.2.51/24 none1");
    let sentence = "ipadm: the link has no interface in the first network stack\n";
    assert_eq!(refused, sentence);
    let shown = host.prints("ipadm show-kept -p -o all");
    let expected = "vnic1:address:10.0.2.51/24:-\nvnic1:route:10.9.0.0/16:10.0.2.2\n";
    assert_eq!(shown, expected);
    host.restart();
    assert_eq!(host.prints("dladm restore"), "");
    let machine = host.machine.borrow();
    let all = machine.addresses.iter().map(|of| of.address.to_string());
    assert_eq!(all.collect::<Vec<_>>(), ["10.0.2.51/24"]);
    assert_eq!(machine.routes.len(), 1);
    drop(machine);
    host.prints("dladm delete-vnic vnic1");
    assert_eq!(
        host.prints("ipadm show-kept -p -o all"),
        "",
        "they go with it"
    );
}
