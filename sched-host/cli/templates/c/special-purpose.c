/*
 * The scheduling component `__NAME__`: changes the priority of the tasks that pass.
 *
 * Everything below is yours to change. `make check` shows whether it still keeps the contract of a component.
 */
#include "msched.h"

#include <stdio.h>
#include <stdlib.h>

/* Adds a number to the priority of each task on its way down. It stores nothing. Many threads call a component
 * concurrently: what changes belongs behind a lock. No lock may be held across a *hop*, a call that reaches another
 * component. */
struct change {
    int32_t by;
};

/* Called once for each node of a tree that names the component. Every declared parameter has a value in its range. */
static void *build(const msched_value *values, char *error, size_t room) {
    struct change *change = malloc(sizeof *change);
    if (!change) {
        snprintf(error, room, "there is no memory");
        return NULL;
    }
    change->by = (int32_t)values[0].integer;
    return change;
}

static void destroy(void *self) { free(self); }

/* A task comes from above. Push it to the child, or hand it back with the reason. */
static uint32_t push_task(void *self, const msched_node *node, msched_task task) {
    const struct change *change = self;
    int32_t before = msched_task_priority(node, task);
    int64_t after = (int64_t)before + change->by;
    uint32_t why;
    if (after > INT32_MAX) after = INT32_MAX;
    if (after < INT32_MIN) after = INT32_MIN;
    msched_task_set_priority(node, task, (int32_t)after);
    why = msched_push_to(node, 0, task);
    /* Whoever keeps the task pushes it again: what was changed is restored. */
    if (why != MSCHED_TAKEN) msched_task_set_priority(node, task, before);
    return why;
}

/* The other functions are NULL. `pull_task` pulls from the parents then; `can_push`, which says that the child has
 * room, asks the parents for more; `can_pull`, which says that there is work above, wakes a worker; `estimated_end`
 * and `estimated_load` are those of the child. */

static const msched_param params[] = {
    MSCHED_PARAM_INT("by", 1, -1000, 1000, "what is added to the priority"), MSCHED_PARAM_END};

/* What a host knows before it builds the component: it checks policies with it, and lists it in `sched plugins`.
 * What it declares has to be true; `sched plugin test` compares it with what happens. The last two flags say that
 * `pull_task` and `estimated_end` are NULL, so that the host can skip the calls: remove them when you write the
 * functions yourself. */
static const msched_component component = {
    .size = sizeof(msched_component),
    .family = MSCHED_SPECIAL_PURPOSE,
    .flags = MSCHED_MAY_REFUSE | MSCHED_FORWARDS_PUSH | MSCHED_FORWARDS_PULL | MSCHED_END_IS_NOTED,
    .name = "__NAME__",
    .doc = "Adds a number to the priority of each task that passes.",
    .params = params,
    .build = build,
    .destroy = destroy,
    .push_task = push_task,
};

MSCHED_PLUGIN("__CRATE__", "0.1.0", &component)
