/*
 * The scheduling component `__NAME__`: gives each task to the child that would finish it first.
 *
 * Everything below is yours to change. `make check` shows whether it still keeps the contract of a component.
 */
#include "msched.h"

#include <stdio.h>
#include <stdlib.h>

/* Gives each task to the child whose workers would finish it first, by what performance models expect; a task
 * without a model goes to the child with the least load. It stores nothing. Many threads call a component
 * concurrently: what changes belongs behind a lock. No lock may be held across a *hop*, a call that reaches another
 * component. */
struct mapper {
    double transfer_weight; /* how much data transfers count, compared with execution */
};

/* A child that could take the task. */
struct choice {
    uint32_t child;
    double cost;     /* when it would be done, or the load of the child where nobody knows */
    uint64_t length; /* MSCHED_NO_TIME if it is not known */
};

/* Called once for each node of a tree that names the component. Every declared parameter has a value in its range. */
static void *build(const msched_value *values, char *error, size_t room) {
    struct mapper *mapper = malloc(sizeof *mapper);
    if (!mapper) {
        snprintf(error, room, "there is no memory");
        return NULL;
    }
    mapper->transfer_weight = values[0].number;
    return mapper;
}

static void destroy(void *self) { free(self); }

static int by_cost(const void *one, const void *other) {
    const struct choice *a = one, *b = other;
    if (a->cost != b->cost) return a->cost < b->cost ? -1 : 1;
    return a->child < b->child ? -1 : a->child > b->child;
}

/* What a child would cost. Returns 0 if no worker below it can execute the task. */
static int consider(const struct mapper *mapper, const msched_node *node, msched_task task, struct choice *choice) {
    uint32_t child = choice->child, able = 0;
    double transfers = 0;
    choice->length = MSCHED_NO_TIME;
    for (uint32_t worker = msched_next_worker(node, child, 0); worker != MSCHED_NONE;
         worker = msched_next_worker(node, child, worker + 1)) {
        uint64_t length;
        if (!msched_can_execute(node, worker, task)) continue;
        able++;
        length = msched_expected_length(node, worker, task, MSCHED_ANY);
        if (length < MSCHED_UNCALIBRATED && length < choice->length) choice->length = length;
        transfers += (double)msched_expected_transfer(
            node, (uint32_t)msched_worker_number(node, worker, MSCHED_WORKER_MEMORY_NODE, 0), task);
    }
    if (!able) return 0;
    choice->cost = (double)msched_child_estimated_end(node, child) + transfers / able * mapper->transfer_weight;
    if (choice->length != MSCHED_NO_TIME) choice->cost += (double)choice->length;
    return 1;
}

/* A task comes from above. Push it to a child, or hand it back with the reason. */
static uint32_t push_task(void *self, const msched_node *node, msched_task task) {
    uint32_t children = msched_children(node), count = 0, why = MSCHED_NO_WORKER;
    uint64_t before = msched_task_predicted(node, task);
    struct choice *choices = malloc((children ? children : 1) * sizeof *choices);
    int known = 1;
    if (!choices) {
        msched_fail(node, "there is no memory for the choice of a child");
        return MSCHED_FULL;
    }
    for (uint32_t child = 0; child < children; child++) {
        choices[count].child = child;
        if (consider(self, node, task, &choices[count])) known &= choices[count++].length != MSCHED_NO_TIME;
    }
    /* Ends count only tasks whose length was predicted: where a length is unknown, compare loads. */
    for (uint32_t place = 0; place < count && !known; place++) {
        choices[place].cost = msched_child_estimated_load(node, choices[place].child);
    }
    qsort(choices, count, sizeof *choices, by_cost);
    for (uint32_t place = 0; place < count; place++) {
        /* The prediction makes the end of the child later: without it, all tasks would go to one child. */
        msched_task_set_predicted(node, task, choices[place].length);
        why = msched_push_to(node, choices[place].child, task);
        if (why == MSCHED_TAKEN) {
            free(choices);
            return MSCHED_TAKEN;
        }
    }
    free(choices);
    /* Nobody takes it. What was changed is restored; a queue above keeps the task until a child has room. */
    msched_task_set_predicted(node, task, before);
    return why;
}

/* The other functions are NULL. `pull_task` pulls from the parents then; `can_push`, which says that a child has
 * room, asks the parents for more; `can_pull`, which says that there is work above, wakes a worker; `estimated_end`
 * and `estimated_load` follow from the children. */

static const msched_param params[] = {
    MSCHED_PARAM_FLOAT("transfer-weight", 1.0, 0.0, 1e9, "weight of data transfers"), MSCHED_PARAM_END};

/* What a host knows before it builds the component: it checks policies with it, and lists it in `sched plugins`.
 * What it declares has to be true; `sched plugin test` compares it with what happens. The last two flags say that
 * `pull_task` and `estimated_end` are NULL, so that the host can skip the calls: remove them when you write the
 * functions yourself. */
static const msched_component component = {
    .size = sizeof(msched_component),
    .family = MSCHED_RESOURCE_MAPPING,
    .flags = MSCHED_MAY_REFUSE | MSCHED_FORWARDS_PUSH | MSCHED_FORWARDS_PULL | MSCHED_END_IS_NOTED,
    .name = "__NAME__",
    .doc = "Gives each task to the child that would finish it first.",
    .params = params,
    .build = build,
    .destroy = destroy,
    .push_task = push_task,
};

MSCHED_PLUGIN("__CRATE__", "0.1.0", &component)
