//! Hostile requests to the link layer, in the order that bytes say.
//!
//! Whatever a program writes: there is one answer, it can be read, it is no longer than
//! it may be, and a request that is refused has changed nothing that can be seen.

use ::link::links::Class;
use ::link::vlan::VlanId;
use linkctl::{
    Answer, MESSAGE_BYTES_MAX, NewMac, NewVnic, Request, Rights, Setting, answer_to, serve,
};

use super::{Card, Lan, Machine, station};

const LINKS: [&str; 8] = [
    "net0", "vnic1", "vnic2", "stub0", "net2000", "", "no", "vlan1",
];
const PROPS: [(&str, &str); 12] = [
    ("mtu", "1400"),
    ("mtu", "99999"),
    ("maxbw", "2M"),
    ("maxbw", "1M"),
    ("protection", "mac-nospoof,ip-nospoof"),
    ("allowed-ips", "10.0.0.0/8,::1"),
    ("rxrings", "hw"),
    ("rxrings", "sw"),
    ("priority", "low"),
    ("speed", "1"),
    ("cpus", "0,1"),
    ("colour", "red"),
];
const RULES: [&str; 6] = [
    "transport=udp",
    "transport=tcp",
    "transport=tcp,local_port=80",
    "local_ip=10.0.0.1",
    "local_port=25",
    "",
];
const FLOWS: [&str; 4] = ["web", "dns", "f-1", "1"];

/// Reads choices from bytes until they end.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn choose<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        from.get(usize::from(self.byte()?) % from.len()).copied()
    }

    fn link(&mut self) -> Option<String> {
        self.choose(&LINKS).map(String::from)
    }

    fn flow(&mut self) -> Option<String> {
        self.choose(&FLOWS).map(String::from)
    }

    fn setting(&mut self) -> Option<Setting> {
        let (name, value) = self.choose(&PROPS)?;
        Some(Setting {
            name: name.into(),
            value: value.into(),
        })
    }

    fn settings(&mut self) -> Option<Vec<Setting>> {
        let most = self.byte()? % 3;
        (0..most).map(|_| self.setting()).collect()
    }

    fn class(&mut self) -> Option<Class> {
        self.choose(&[Class::Phys, Class::Etherstub, Class::Vnic, Class::Vlan])
    }

    fn vnic(&mut self) -> Option<NewVnic> {
        let mac = match self.byte()? % 4 {
            0 => NewMac::Random { prefix: None },
            1 => NewMac::Random {
                prefix: Some([1, 2, 3]),
            },
            last => NewMac::Given(station(last)),
        };
        Some(NewVnic {
            name: self.link()?,
            over: self.link()?,
            mac,
            vid: VlanId::new(u16::from(self.byte()? % 3)),
            settings: self.settings()?,
        })
    }

    fn request(&mut self) -> Option<Request> {
        Some(match self.byte()? % 18 {
            0 => Request::Links {
                from: self.byte()?.into(),
            },
            1 => Request::Groups { link: self.link()? },
            2 => Request::Props { link: self.link()? },
            3 => Request::Statistics { link: self.link()? },
            4 => Request::Flows {
                from: self.byte()?.into(),
            },
            5 => Request::FlowStatistics { flow: self.flow()? },
            6 | 7 => Request::CreateVnic(self.vnic()?),
            8 => Request::CreateVlan {
                name: match self.byte()? % 2 {
                    0 => None,
                    _ => Some(self.link()?),
                },
                over: self.link()?,
                vid: VlanId::new(2)?,
            },
            9 => Request::CreateEtherstub { name: self.link()? },
            10 => Request::Delete {
                link: self.link()?,
                class: self.class()?,
            },
            11 => Request::SetProp {
                link: self.link()?,
                setting: self.setting()?,
            },
            12 => Request::ResetProp {
                link: self.link()?,
                name: self.setting()?.name,
            },
            13 => Request::AddFlow {
                name: self.flow()?,
                link: self.link()?,
                attributes: self.choose(&RULES)?.into(),
                settings: self.settings()?,
            },
            14 => Request::RemoveFlow { flow: self.flow()? },
            15 => Request::RemoveFlows { link: self.link()? },
            16 => Request::SetFlowProp {
                flow: self.flow()?,
                setting: self.setting()?,
            },
            _ => Request::ResetFlowProp {
                flow: self.flow()?,
                name: self.setting()?.name,
            },
        })
    }

    /// A request with some of its bytes changed, or bytes as they are.
    fn bytes(&mut self) -> Option<Vec<u8>> {
        let how = self.byte()?;
        if how == 0xff {
            let len = usize::from(self.byte()?).min(self.0.len());
            let (bytes, rest) = self.0.split_at(len);
            self.0 = rest;
            return Some(bytes.to_vec());
        }
        let mut bytes = self.request()?.encode().ok()?;
        for _ in 0..how >> 6 {
            let (at, value) = (self.byte()?, self.byte()?);
            if let Some(byte) = bytes.get_mut(usize::from(at)) {
                *byte = value;
            }
        }
        Some(bytes)
    }
}

/// Runs one script; panics if something is wrong.
pub fn fuzz_requests(bytes: &[u8]) {
    let mut script = Script(bytes);
    let card = Card::new(station(0).0, &[(2, 1), (1, 1)], true);
    let Ok(lan) = Lan::with_buffers(Some(card.clone()), 16) else {
        return;
    };
    let mut machine = Machine::new(lan);
    while let (Some(mood), Some(request)) = (script.byte(), script.bytes()) {
        card.set_refusing(mood % 8 == 7);
        let rights = match mood % 16 {
            3 => Rights::Look,
            _ => Rights::Change,
        };
        let before = view(&mut machine);
        let answer = answer_to(&request, rights, &mut machine);
        assert!(answer.len() <= MESSAGE_BYTES_MAX);
        let answer = Answer::decode(&answer).expect("the kernel's own words");
        let is_change = Request::decode(&request).is_ok_and(|request| request.is_change());
        let is_refused = matches!(answer, Answer::Refused(_));
        if is_refused || !is_change || rights == Rights::Look {
            assert_eq!(view(&mut machine), before, "{request:?} {answer:?}");
        }
    }
}

/// All that can be seen by requests.
fn view(machine: &mut Machine) -> Vec<Answer> {
    let mut look = |request: Request| serve(&request, Rights::Look, machine);
    let mut seen = vec![look(Request::Links { from: 0 })];
    for link in LINKS {
        seen.push(look(Request::Props { link: link.into() }));
        seen.push(look(Request::Groups { link: link.into() }));
    }
    let mut from = 0;
    loop {
        let flows = look(Request::Flows { from });
        let next = match &flows {
            Answer::Flows { next, .. } => *next,
            _ => None,
        };
        seen.push(flows);
        match next {
            Some(next) => from = next,
            None => return seen,
        }
    }
}
