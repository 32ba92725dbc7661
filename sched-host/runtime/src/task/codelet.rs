//! Codelets: a kernel by name, with an implementation for each architecture that can run it.

use super::codelets::Codelets;
use super::failure::SubmitError;
use super::measure;
use super::submit::Submitter;
use super::variant_counts::VariantCounts;
use super::verdict::Verdict;
use crate::core::{Core, TaskPlace, Vacant};
use crate::data::DataHeader;
use crate::data::access::AccessList;
use crate::device::needs::{DeviceNeeds, Unable};
use crate::parallel::crew::Team;
use crate::parallel::{Code, Implementation};
use crossbeam::utils::CachePadded;
use parking_lot::Mutex;
use sched_core::{Arch, ArchSet, WorkerId};
use sched_graph::{AccessMode, Where};
use sched_model::{CodeletModel, Model};
use sched_sync::sole::{InTurn, Right};
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Arguments of a kernel beside its data.
pub struct Context<'a, P = ()> {
    /// Parameters that the application passed with the task.
    pub params: &'a P,
    /// The worker that runs the task; in a team, this member.
    pub worker: WorkerId,
    pub(crate) team: Team<'a>,
}

impl<P> Context<'_, P> {
    /// Submits further tasks.
    #[must_use]
    pub fn submitter(&self) -> &Submitter {
        self.team.submitter()
    }

    /// The workers that execute the task together.
    #[must_use]
    pub fn team(&self) -> Team<'_> {
        self.team
    }
}

impl<P: fmt::Debug> fmt::Debug for Context<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("params", self.params).field("worker", &self.worker).finish_non_exhaustive()
    }
}

pub(crate) type Kernel<L, P> = Box<dyn for<'a> Fn(&Context<'_, P>, <L as AccessList>::Views<'a>) + Send + Sync>;

/// A named kernel that tasks run. `L` describes the accesses to data; `P` is the type of the parameters that each task
/// passes by value.
///
/// Made with [`Submitter::codelet`]; belongs to that runtime. Cheap to clone.
pub struct Codelet<L: AccessList, P = ()> {
    pub(crate) inner: Arc<CodeletInner<L, P>>,
    held: Arc<Held>,
}

impl<L: AccessList, P> Codelet<L, P> {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.facts.name
    }
}

impl<L: AccessList, P> Clone for Codelet<L, P> {
    fn clone(&self) -> Codelet<L, P> {
        Codelet { inner: Arc::clone(&self.inner), held: Arc::clone(&self.held) }
    }
}

impl<L: AccessList, P> fmt::Debug for Codelet<L, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Codelet").field("name", &self.inner.facts.name).finish_non_exhaustive()
    }
}

/// What the handles of one codelet share. Records of ended tasks keep the codelet for its next task, so it ends with
/// the last handle.
struct Held {
    core: Weak<Core>,
    facts: Arc<CodeletFacts>,
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(core) = self.core.upgrade() {
            // Not inside any more when jobs are dropped: that is code of the application.
            let vacant = self.facts.slots.retire(&mut core.sole.enter());
            core.release(&vacant);
        }
    }
}

/// The part of a codelet that does not depend on its types.
pub(crate) struct CodeletFacts {
    pub(crate) name: String,
    pub(crate) number: u32,
    pub(crate) runtime: u64,
    pub(crate) archs: ArchSet,
    /// The only workers that may execute its tasks: by the program, and by the settings of the runtime.
    pub(crate) only: Vec<Where>,
    /// What devices lack that cannot execute its tasks, in words.
    pub(crate) unable: Option<String>,
    /// Whether its tasks are restricted.
    pub(crate) is_special: bool,
    /// Whether its tasks nest.
    pub(crate) nests: bool,
    /// A number for the scheduler, for tasks that have none of their own.
    pub(crate) sched_data: u64,
    /// Maximum number of workers that can execute a task together.
    pub(crate) width: u16,
    pub(crate) implementations: Vec<Implementation>,
    /// Expected durations set by the application, by architecture and number of workers.
    pub(crate) estimates: Vec<(Arch, u16, Duration)>,
    /// Expected energy in joules set by the application, by architecture and number of workers.
    pub(crate) energies: Vec<(Arch, u16, f64)>,
    /// The performance model.
    pub(crate) model: Option<Arc<CodeletModel>>,
    /// Tasks by variant, while energy is measured.
    pub(crate) variant_counts: VariantCounts,
    /// Whether the arguments of its tasks need no drop.
    pub(crate) keeps_nothing: bool,
    pub(crate) slots: FreeSlots,
}

/// Number of tasks ahead whose memory is prefetched.
const FETCHED_AHEAD: usize = 8;

/// Slots whose record holds a job of one codelet, so that the next task finds a box that fits.
///
/// Submitters take from one list, and threads that end tasks add to another: they meet only when the first is empty.
pub(crate) struct FreeSlots {
    /// Changed by submissions, with the right of the runtime.
    to_take: CachePadded<InTurn<Vec<Vacant>>>,
    put_back: CachePadded<Mutex<PutBack>>,
}

/// Slots that were put back.
#[derive(Default)]
struct PutBack {
    slots: Vec<Vacant>,
    /// Whether the codelet has no handle any more, so that nobody will take them.
    retired: bool,
}

impl FreeSlots {
    /// No slots yet, of the runtime with this id.
    fn new(runtime: u64) -> FreeSlots {
        FreeSlots { to_take: CachePadded::new(InTurn::new(runtime, Vec::new())), put_back: CachePadded::default() }
    }

    /// Takes a slot; also returns one that will be taken soon.
    #[inline(always)]
    pub(crate) fn take(&self, right: &mut Right<'_>) -> Option<(TaskPlace, Option<Vacant>)> {
        self.to_take.with(right, |slots| {
            if slots.is_empty() {
                self.take_what_was_put_back(slots);
            }
            let slot = slots.pop()?;
            let soon = slots.len().checked_sub(FETCHED_AHEAD).map(|index| slots[index]);
            Some((slot.place, soon))
        })
    }

    #[cold]
    fn take_what_was_put_back(&self, slots: &mut Vec<Vacant>) {
        std::mem::swap(slots, &mut self.put_back.lock().slots);
    }

    /// Calls `add` to put slots on the list, or in `left` if the codelet has no handle any more.
    pub(crate) fn put_back(&self, left: &mut Vec<Vacant>, add: impl FnOnce(&mut Vec<Vacant>)) {
        let mut list = self.put_back.lock();
        add(if list.retired { left } else { &mut list.slots });
    }

    /// Takes all slots, since the codelet has no handle any more.
    fn retire(&self, right: &mut Right<'_>) -> Vec<Vacant> {
        let mut slots = self.to_take.with(right, std::mem::take);
        let mut list = self.put_back.lock();
        list.retired = true;
        slots.append(&mut list.slots);
        slots
    }
}

impl CodeletFacts {
    /// No worker has an architecture of an implementation.
    #[cold]
    pub(crate) fn no_worker(&self) -> SubmitError {
        let has: Vec<String> = self.archs.iter().map(|arch| arch.to_string()).collect();
        SubmitError::NoWorker { codelet: self.name.clone(), has: has.join(", ") }
    }

    /// The runtime has ended.
    #[cold]
    pub(crate) fn ended(&self) -> SubmitError {
        SubmitError::Ended { codelet: self.name.clone() }
    }

    /// Index of the implementation for `size` workers of `arch`: number `chosen` of those for the architecture if it
    /// supports that size, else the first that does.
    #[inline]
    pub(crate) fn select(&self, arch: Arch, size: u16, chosen: Option<u32>) -> Option<usize> {
        let fits = |of: &Implementation| of.arch == arch && of.most >= size;
        let first = self.implementations.iter().position(fits)?;
        let Some(chosen) = chosen else { return Some(first) };
        let mut of_arch = self.implementations.iter().enumerate().filter(|(_, of)| of.arch == arch);
        let chosen = of_arch.nth(chosen as usize).filter(|(_, of)| fits(of));
        Some(chosen.map_or(first, |(index, _)| index))
    }
}

pub(crate) struct CodeletInner<L: AccessList, P> {
    pub(crate) facts: Arc<CodeletFacts>,
    pub(super) kernels: Vec<Code<L, P>>,
    parameters: Option<Parameters<P>>,
    listed: Weak<Codelets>,
}

impl<L: AccessList, P> Drop for CodeletInner<L, P> {
    fn drop(&mut self) {
        if let Some(codelets) = self.listed.upgrade() {
            codelets.remove(self.facts.number);
        }
    }
}

/// Parameters of a multiple regression, made from those of a task.
type Parameters<P> = Box<dyn Fn(&P) -> Vec<f64> + Send + Sync>;

impl<L: AccessList, P> CodeletInner<L, P> {
    /// Footprint of a task for the codelet's model; `None` without a model. The data are in the codelet's order.
    #[inline(always)]
    pub(crate) fn footprint(&self, params: &P, accesses: &[(&Arc<DataHeader>, AccessMode)]) -> Option<u64> {
        self.facts.model.as_ref().map(|model| self.modelled(model, params, accesses))
    }

    fn modelled(&self, model: &CodeletModel, params: &P, accesses: &[(&Arc<DataHeader>, AccessMode)]) -> u64 {
        let parameters = self.parameters.as_ref().map(|parameters| parameters(params));
        measure::modelled(model, parameters.as_deref(), accesses)
    }
}

/// Settings of a codelet before it is built. A codelet needs at least one implementation.
#[must_use = "a codelet is made by `build`"]
pub struct CodeletBuilder<L: AccessList, P = ()> {
    pub(crate) settings: CodeletSettings,
    kernels: Vec<Code<L, P>>,
    parameters: Option<Parameters<P>>,
}

/// The part of a [`CodeletBuilder`] that does not depend on its types.
pub(crate) struct CodeletSettings {
    core: Arc<Core>,
    name: String,
    implementations: Vec<Implementation>,
    only: Option<Where>,
    needs: DeviceNeeds,
    nests: bool,
    sched_data: u64,
    estimates: Vec<(Arch, u16, Duration)>,
    pub(crate) energies: Vec<(Arch, u16, f64)>,
    model: Option<Model>,
}

impl CodeletSettings {
    fn new(core: Arc<Core>, name: &str) -> CodeletSettings {
        CodeletSettings {
            core,
            name: name.to_owned(),
            implementations: Vec::new(),
            only: None,
            needs: DeviceNeeds::default(),
            nests: false,
            sched_data: 0,
            estimates: Vec::new(),
            energies: Vec::new(),
            model: None,
        }
    }

    /// Lists the codelet; `keeps_nothing` if the arguments of its tasks need no drop.
    fn list(self, keeps_nothing: bool) -> (Arc<CodeletFacts>, Arc<Held>, Weak<Codelets>) {
        let archs = self.implementations.iter().map(|of| of.arch).collect();
        let width = self.implementations.iter().map(|of| of.most).max().unwrap_or(1);
        let model = self.model.zip(self.core.models.as_ref()).map(|(model, models)| models.codelet(&model));
        let codelets = &self.core.backend.codelets;
        let settings = self.core.codelet_settings.get(&self.name);
        let mut only: Vec<Where> = self.only.into_iter().chain(settings.and_then(|of| of.only.clone())).collect();
        let backend = &self.core.backend;
        let devices = backend.memories.as_ref().map_or(&[][..], |memories| memories.devices());
        let unable = Unable::of(self.needs, devices, &self.core.facts).map(|Unable { others, why }| {
            only.push(others);
            why
        });
        let facts = codelets.add(|number| CodeletFacts {
            name: self.name,
            number,
            runtime: self.core.id,
            archs,
            is_special: !only.is_empty() || self.nests,
            nests: self.nests,
            unable,
            only,
            sched_data: settings.and_then(|of| of.sched_data).unwrap_or(self.sched_data),
            width,
            implementations: self.implementations,
            estimates: self.estimates,
            energies: self.energies,
            model,
            variant_counts: VariantCounts::default(),
            keeps_nothing,
            slots: FreeSlots::new(self.core.id),
        });
        let listed = Arc::downgrade(codelets);
        let held = Arc::new(Held { core: Arc::downgrade(&self.core), facts: Arc::clone(&facts) });
        (facts, held, listed)
    }
}

impl<L: AccessList, P: Send + 'static> CodeletBuilder<L, P> {
    pub(crate) fn new(core: Arc<Core>, name: &str) -> CodeletBuilder<L, P> {
        CodeletBuilder { settings: CodeletSettings::new(core, name), kernels: Vec::new(), parameters: None }
    }

    /// Adds an implementation for CPU cores. The kernel returns nothing, or a `Result` whose error fails the task; see
    /// [`Verdict`].
    pub fn cpu<V: Verdict>(
        self,
        name: &str,
        kernel: impl for<'a> Fn(&Context<'_, P>, L::Views<'a>) -> V + Send + Sync + 'static,
    ) -> Self {
        self.implementation(Arch::CPU, name, kernel)
    }

    /// Adds an implementation for an architecture.
    pub fn implementation<V: Verdict>(
        self,
        arch: Arch,
        name: &str,
        kernel: impl for<'a> Fn(&Context<'_, P>, L::Views<'a>) -> V + Send + Sync + 'static,
    ) -> Self {
        let kernel = move |context: &Context<'_, P>, views: L::Views<'_>| kernel(context, views).conclude();
        self.add(Implementation { arch, name: name.to_owned(), most: 1 }, Code::Once(Box::new(kernel)))
    }

    pub(crate) fn add(mut self, implementation: Implementation, code: Code<L, P>) -> Self {
        self.settings.implementations.push(implementation);
        self.kernels.push(code);
        self
    }

    /// Restricts execution to these places; a [task](super::submit::TaskBuilder::only_on) may be restricted further.
    ///
    /// ```
    /// # use sched_runtime::Submitter;
    /// # fn make(submitter: &Submitter) {
    /// use sched_graph::Where;
    /// let write = submitter.codelet::<(), ()>("write").cpu("write", |_, ()| {}).only_on(Where::worker(0)).build();
    /// # }
    /// ```
    pub fn only_on(mut self, places: Where) -> Self {
        self.settings.only = Some(places);
        self
    }

    /// Sets what its kernels need of a device. Devices that lack it do not execute its tasks; where nobody else can, a
    /// submission is an [error](super::failure::SubmitError::Unable).
    pub fn device_needs(mut self, needs: DeviceNeeds) -> Self {
        self.settings.needs = needs;
        self
    }

    /// Sets a number for the scheduler, whose meaning depends on its components, for tasks without a
    /// [number of their own](super::submit::TaskBuilder::sched_data).
    pub fn sched_data(mut self, data: u64) -> Self {
        self.settings.sched_data = data;
        self
    }

    /// Lets its tasks [nest](Context::nest) others: such a task ends with the tasks that its kernel submits as part of
    /// it.
    pub fn nests(mut self) -> Self {
        self.settings.nests = true;
        self
    }

    /// Sets the duration of a task of this codelet on one worker of an architecture, for any implementation. Schedulers
    /// that use expected lengths read it. The last call counts; without a call the duration on that architecture is
    /// unknown.
    ///
    /// ```
    /// # use sched_runtime::Submitter;
    /// # use std::time::Duration;
    /// # use sched_core::Arch;
    /// # fn make(submitter: &Submitter) {
    /// let codelet = submitter.codelet::<(), ()>("sleep").cpu("sleep", |_, ()| {});
    /// let codelet = codelet.estimate(Arch::CPU, Duration::from_millis(2)).build();
    /// # }
    /// ```
    pub fn estimate(mut self, arch: Arch, length: Duration) -> Self {
        self.settings.estimates.push((arch, 1, length));
        self
    }

    /// Sets the duration of a task of this codelet on a combined worker of `size` workers of an architecture; see
    /// [`estimate`](Self::estimate) for one worker. Without a call for a size its duration is unknown: a scheduler that
    /// uses expected lengths does not assign the task to a combined worker of that size.
    pub fn estimate_parallel(mut self, arch: Arch, size: usize, length: Duration) -> Self {
        self.settings.estimates.push((arch, u16::try_from(size).unwrap_or(u16::MAX), length));
        self
    }

    /// Sets the performance model that learns durations from measurements, for each architecture, implementation and
    /// size (the footprint of the data). For an architecture with an [`estimate`](Self::estimate) the estimate is used.
    ///
    /// ```
    /// # use sched_runtime::{Read, Submitter};
    /// # fn make(submitter: &Submitter) {
    /// use sched_model::Model;
    /// let sum = submitter
    ///     .codelet::<(Read<Vec<f64>>,), ()>("sum")
    ///     .cpu("sum", |_, (values,)| drop(values.iter().sum::<f64>()))
    ///     .model(Model::regression("sum"))
    ///     .build();
    /// # }
    /// ```
    pub fn model(mut self, model: Model) -> Self {
        self.settings.model = Some(model);
        self
    }

    /// Parameters of a [multiple regression](Model::multiple), made from those of each task. They are part of the
    /// footprint of the task.
    pub fn model_params<const N: usize>(mut self, params: impl Fn(&P) -> [f64; N] + Send + Sync + 'static) -> Self {
        self.parameters = Some(Box::new(move |passed| params(passed).to_vec()));
        self
    }

    /// Builds the codelet.
    ///
    /// A codelet without implementations can be built; its tasks cannot be submitted.
    pub fn build(self) -> Codelet<L, P> {
        let (facts, held, listed) = self.settings.list(!std::mem::needs_drop::<(L::Handles, P)>());
        let inner = CodeletInner { facts, kernels: self.kernels, parameters: self.parameters, listed };
        Codelet { inner: Arc::new(inner), held }
    }
}
