//! The manifest: what a plugin contains.

use crate::info::{Arity, ComponentInfo, Family, SlotInfo};
use crate::params::{ParamInfo, ParamKind, Value};
use abi_stable::StableAbi;
use abi_stable::std_types::{RString, RVec, Tuple2};

/// Names with texts, for additions of later versions.
pub type Extras = RVec<Tuple2<RString, RString>>;

/// Name of the entry of [`RawInfo::extras`] that has [`Info::package`](crate::Info::package).
pub const PACKAGE: &str = "package";

/// Name of the entry of [`RawInfo::extras`] with the names of slots that may be left out, joined by commas.
pub const OPTIONAL_SLOTS: &str = "optional-slots";

/// Name of the entry of [`RawInfo::extras`] with the slots of a component that takes many children beside them: lines
/// of name, tab and description.
pub const SLOTS_BESIDE: &str = "slots-beside-children";

/// Name of the entry of [`RawParamInfo::extras`] with the texts that a parameter may have, joined by commas.
pub const CHOICES: &str = "choices";

/// The text of this name.
fn extra<'a>(extras: &'a Extras, name: &str) -> Option<&'a str> {
    extras.iter().find(|Tuple2(known, _)| known == name).map(|Tuple2(_, text)| text.as_str())
}

fn joined<'a>(words: impl Iterator<Item = &'a str>) -> String {
    words.collect::<Vec<_>>().join(",")
}

/// The components of a plugin.
#[repr(C)]
#[derive(StableAbi, Clone, Debug)]
pub struct Manifest {
    /// Each component.
    pub components: RVec<RawInfo>,
    /// For later versions.
    pub extras: Extras,
}

/// [`ComponentInfo`] on the wire. A number that a reader does not know comes from a later version.
#[repr(C)]
#[derive(StableAbi, Clone, Debug)]
pub struct RawInfo {
    /// Its name in a policy.
    pub name: RString,
    /// One-line description.
    pub doc: RString,
    /// 0 flow-control, 1 resource-mapping, 2 special-purpose, 3 worker.
    pub family: u32,
    /// 0 leaf, 1 one, 2 many, 3 slots.
    pub arity: u32,
    /// Bit 0: stores tasks. Bit 1: may refuse. Bit 2: needs models. Since 1.1: bit 3: forwards pulls; bit 4: forwards
    /// pushes; bit 5: wakes workers; bit 6: pulled only; bit 7: empty until pushed; bit 8: for combined workers; bit 9:
    /// pushes on pull; bit 10: its end is noted; bit 11: keeps its state; bit 12: hears of tasks.
    pub flags: u32,
    /// Number of tasks that a queue below should hold.
    pub lookahead: u32,
    /// Names of the parameters that bound its storage.
    pub bounds: RVec<RString>,
    /// Slot names and docs.
    pub slots: RVec<Tuple2<RString, RString>>,
    /// Parameters that a policy may set.
    pub params: RVec<RawParamInfo>,
    /// [`PACKAGE`], where the component states its package; [`OPTIONAL_SLOTS`]; [`SLOTS_BESIDE`]. Readers ignore names
    /// that they do not know.
    pub extras: Extras,
}

/// [`ParamInfo`] on the wire.
#[repr(C)]
#[derive(StableAbi, Clone, Debug)]
pub struct RawParamInfo {
    /// Its name in a policy.
    pub name: RString,
    /// What it does.
    pub doc: RString,
    /// Unit of the value.
    pub unit: RString,
    /// The default; its type is the type of the parameter.
    pub default: RawValue,
    /// Smallest number allowed.
    pub min: RawValue,
    /// Largest number allowed.
    pub max: RawValue,
    /// [`CHOICES`], where not every text is allowed.
    pub extras: Extras,
}

/// [`Value`] on the wire.
#[repr(C)]
#[derive(StableAbi, Clone, Debug)]
pub struct RawValue {
    /// 0 bool, 1 int, 2 float, 3 text.
    pub kind: u32,
    /// The value of a bool or int.
    pub int: i64,
    /// The float.
    pub float: f64,
    /// The text.
    pub text: RString,
}

/// The value of a parameter, passed to a constructor.
#[repr(C)]
#[derive(StableAbi, Clone, Debug)]
pub struct RawParam {
    /// Its name.
    pub name: RString,
    /// Its value.
    pub value: RawValue,
}

impl From<&Value> for RawValue {
    fn from(value: &Value) -> RawValue {
        let empty = RawValue { kind: 0, int: 0, float: 0.0, text: RString::new() };
        match value {
            Value::Bool(flag) => RawValue { kind: 0, int: i64::from(*flag), ..empty },
            Value::Int(number) => RawValue { kind: 1, int: *number, ..empty },
            Value::Float(number) => RawValue { kind: 2, float: *number, ..empty },
            Value::Text(text) => RawValue { kind: 3, text: text.as_str().into(), ..empty },
        }
    }
}

impl RawValue {
    /// Decodes the value; `None` if only a later version knows its kind.
    #[must_use]
    pub fn read(&self) -> Option<Value> {
        Some(match self.kind {
            0 => Value::Bool(self.int != 0),
            1 => Value::Int(self.int),
            2 => Value::Float(self.float),
            3 => Value::Text(self.text.to_string()),
            _ => return None,
        })
    }
}

/// The number of a family on the wire.
#[must_use]
pub const fn family_number(family: Family) -> u32 {
    match family {
        Family::FlowControl => 0,
        Family::ResourceMapping => 1,
        Family::SpecialPurpose => 2,
        Family::Worker => 3,
    }
}

/// The family of this number; `None` if only a later version knows it.
#[must_use]
pub const fn family_of(number: u32) -> Option<Family> {
    match number {
        0 => Some(Family::FlowControl),
        1 => Some(Family::ResourceMapping),
        2 => Some(Family::SpecialPurpose),
        3 => Some(Family::Worker),
        _ => None,
    }
}

impl From<&ComponentInfo> for RawInfo {
    fn from(info: &ComponentInfo) -> RawInfo {
        RawInfo {
            name: info.name.as_str().into(),
            doc: info.doc.as_str().into(),
            family: family_number(info.family),
            arity: match info.arity {
                Arity::Leaf => 0,
                Arity::One => 1,
                // To an older host it is a component without slots.
                Arity::Many | Arity::ManyAndSlots => 2,
                Arity::Slots => 3,
            },
            flags: u32::from(info.stores)
                | u32::from(info.may_refuse) << 1
                | u32::from(info.needs_models) << 2
                | u32::from(info.forwards_pull) << 3
                | u32::from(info.forwards_push) << 4
                | u32::from(info.wakes_workers) << 5
                | u32::from(info.pulled_only) << 6
                | u32::from(info.empty_until_pushed) << 7
                | u32::from(info.combined) << 8
                | u32::from(info.pushes_on_pull) << 9
                | u32::from(info.end_is_noted) << 10
                | u32::from(info.keeps_state) << 11
                | u32::from(info.hears_tasks) << 12
                | u32::from(info.newest_comes_back) << 13
                | u32::from(info.waits_at_home) << 14,
            lookahead: info.lookahead,
            bounds: info.bounds.iter().map(|name| name.as_str().into()).collect(),
            slots: match info.arity {
                Arity::ManyAndSlots => RVec::new(),
                _ => {
                    info.slots.iter().map(|slot| Tuple2(slot.name.as_str().into(), slot.doc.as_str().into())).collect()
                }
            },
            params: info.params.iter().map(RawParamInfo::from).collect(),
            extras: extras_of(info),
        }
    }
}

/// The entries of a description that say something.
fn extras_of(info: &ComponentInfo) -> Extras {
    let optional = joined(info.slots.iter().filter(|slot| slot.optional).map(|slot| slot.name.as_str()));
    let line = |slot: &SlotInfo| format!("{}\t{}", slot.name, slot.doc.replace('\n', " "));
    let beside = match info.arity {
        Arity::ManyAndSlots => info.slots.iter().map(line).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    };
    let all = [(PACKAGE, info.package.clone()), (OPTIONAL_SLOTS, optional), (SLOTS_BESIDE, beside)];
    let said = all.into_iter().filter(|(_, text)| !text.is_empty());
    said.map(|(name, text)| Tuple2(name.into(), text.into())).collect()
}

impl From<&ParamInfo> for RawParamInfo {
    fn from(param: &ParamInfo) -> RawParamInfo {
        let (min, max) = match &param.kind {
            ParamKind::Bool | ParamKind::Text | ParamKind::Choice(_) => (Value::Bool(false), Value::Bool(false)),
            ParamKind::Int { min, max } => (Value::Int(*min), Value::Int(*max)),
            ParamKind::Float { min, max } => (Value::Float(*min), Value::Float(*max)),
        };
        RawParamInfo {
            name: param.name.as_str().into(),
            doc: param.doc.as_str().into(),
            unit: param.unit.as_str().into(),
            default: (&param.default).into(),
            min: (&min).into(),
            max: (&max).into(),
            extras: match &param.kind {
                ParamKind::Choice(of) => {
                    let texts = joined(of.iter().map(String::as_str));
                    [Tuple2(CHOICES.into(), texts.into())].into_iter().collect()
                }
                _ => RVec::new(),
            },
        }
    }
}

impl RawInfo {
    /// Decodes the description.
    ///
    /// # Errors
    /// A line that names what was not understood.
    pub fn read(&self) -> Result<ComponentInfo, String> {
        let name = self.name.to_string();
        let unknown =
            |what: &str, number: u32| format!("component `{name}` has {what} {number}, which this host does not know");
        let family = family_of(self.family).ok_or_else(|| unknown("family", self.family))?;
        let arity = match self.arity {
            0 => Arity::Leaf,
            1 => Arity::One,
            2 => Arity::Many,
            3 => Arity::Slots,
            number => return Err(unknown("arity", number)),
        };
        let (arity, slots) = match extra(&self.extras, SLOTS_BESIDE) {
            Some(lines) if arity == Arity::Many => (Arity::ManyAndSlots, self.slots_beside(lines)),
            _ => (arity, self.slots.iter().map(|Tuple2(name, doc)| self.slot(name, doc)).collect()),
        };
        let mut params = Vec::with_capacity(self.params.len());
        for param in &self.params {
            let unreadable = || format!("parameter `{}` of component `{name}` has an unknown type", param.name);
            params.push(param.read().ok_or_else(unreadable)?);
        }
        Ok(ComponentInfo {
            name: self.name.to_string(),
            family,
            doc: self.doc.to_string(),
            package: extra(&self.extras, PACKAGE).unwrap_or_default().to_owned(),
            arity,
            stores: self.flags & 1 != 0,
            bounds: self.bounds.iter().map(ToString::to_string).collect(),
            slots,
            params,
            lookahead: self.lookahead,
            may_refuse: self.flags & 2 != 0,
            needs_models: self.flags & 4 != 0,
            forwards_pull: self.flags & 8 != 0,
            forwards_push: self.flags & 16 != 0,
            wakes_workers: self.flags & 32 != 0,
            pulled_only: self.flags & 64 != 0,
            empty_until_pushed: self.flags & 128 != 0,
            combined: self.flags & 256 != 0,
            pushes_on_pull: self.flags & 512 != 0,
            end_is_noted: self.flags & 1024 != 0,
            keeps_state: self.flags & 2048 != 0,
            hears_tasks: self.flags & 4096 != 0,
            newest_comes_back: self.flags & 8192 != 0,
            waits_at_home: self.flags & 16384 != 0,
        })
    }
}

impl RawInfo {
    fn slot(&self, name: &str, doc: &str) -> SlotInfo {
        let optional = extra(&self.extras, OPTIONAL_SLOTS).unwrap_or_default().split(',').any(|slot| slot == name);
        SlotInfo { name: name.to_owned(), doc: doc.to_owned(), optional }
    }

    /// The slots of [`SLOTS_BESIDE`].
    fn slots_beside(&self, lines: &str) -> Vec<SlotInfo> {
        let lines = lines.lines().map(|line| line.split_once('\t').unwrap_or((line, "")));
        lines.map(|(name, doc)| self.slot(name, doc)).collect()
    }
}

impl RawParamInfo {
    fn read(&self) -> Option<ParamInfo> {
        let default = self.default.read()?;
        let kind = match (&default, self.min.read()?, self.max.read()?) {
            (Value::Bool(_), ..) => ParamKind::Bool,
            (Value::Text(_), ..) => match extra(&self.extras, CHOICES) {
                Some(texts) => ParamKind::Choice(texts.split(',').map(str::to_owned).collect()),
                None => ParamKind::Text,
            },
            (Value::Int(_), Value::Int(min), Value::Int(max)) => ParamKind::Int { min, max },
            (Value::Float(_), Value::Float(min), Value::Float(max)) => ParamKind::Float { min, max },
            _ => return None,
        };
        Some(ParamInfo {
            name: self.name.to_string(),
            kind,
            default,
            unit: self.unit.to_string(),
            doc: self.doc.to_string(),
        })
    }
}
