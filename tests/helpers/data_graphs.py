"""Small random data sets for hypothesis: directed edges, self-loops, duplicates, isolated nodes, no nodes at all."""

from hypothesis import strategies as st

from sopool.data.pack import Graph, pack

names = st.one_of(st.integers(-3, 3), st.sampled_from(["C", "N", "O"]))
numbers = st.floats(-100, 100, width=32)


OPTIONAL = (
    "node_labels",
    "node_categories",
    "node_attributes",
    "edge_labels",
    "edge_categories",
    "edge_attributes",
    "edge_weights",
    "graph_attributes",
)
"""What graphs may carry besides a label."""


@st.composite
def graph(draw, carried, undirected):
    """A graph that carries the fields named in ``carried``."""
    n = draw(st.integers(0, 5))
    pairs = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=7)) if n else []
    if undirected:
        pairs = [p for a, b in pairs for p in (((a, b), (b, a)) if a != b else ((a, b),))]
    values = {field: _values(draw, field, n if field.startswith("node") else len(pairs)) for field in carried}
    return Graph(num_nodes=n, edges=pairs, label=draw(st.sampled_from(["yes", "no", 3])), **values)


def _values(draw, field, count):
    if field == "graph_attributes":
        return {"heat": draw(st.one_of(st.none(), numbers)), "size": count}
    if field.endswith("categories"):
        return {name: [draw(names) for _ in range(count)] for name in ("charge", "ring")}
    item = {"labels": names, "weights": numbers, "attributes": st.tuples(numbers, numbers)}[field[5:]]
    return [draw(item) for _ in range(count)]


@st.composite
def stores(draw, undirected=False, min_size=1, more=False):
    """Graphs with some of the labels, attributes and weights; with ``more``, also with all else that graphs carry."""
    kinds = OPTIONAL if more else ("node_labels", "node_attributes", "edge_labels", "edge_weights")
    carried = [kind for kind in kinds if not (undirected and kind.startswith("edge")) and draw(st.booleans())]
    return pack(draw(st.lists(graph(carried, undirected), min_size=min_size, max_size=6)), name="random")


def as_lists(store):
    """Everything a store says, graph by graph, with labels by name: for comparisons."""
    out = []
    for one in store:
        out.append(
            {
                "nodes": one.num_nodes,
                "edges": one.edge_index.t().tolist(),
                "label": None if one.labels is None else one.classes[int(one.labels[0])],
                "node_labels": None if one.node_labels is None else [one.node_label_names[c] for c in one.node_labels],
                "edge_labels": None if one.edge_labels is None else [one.edge_label_names[c] for c in one.edge_labels],
                "node_attributes": None if one.node_attributes is None else one.node_attributes.tolist(),
                "edge_attributes": None if one.edge_attributes is None else one.edge_attributes.tolist(),
                "edge_weights": None if one.edge_weights is None else one.edge_weights.tolist(),
            }
        )
        for kind in ("node", "edge"):
            codes = getattr(one, f"{kind}_categories")
            if codes is not None:
                out[-1][f"{kind}_categories"] = _named(codes, getattr(one, f"{kind}_category_columns"))
        if one.graph_attributes is not None:
            out[-1]["graph_attributes"] = _known(one.graph_attributes[0], one.graph_attribute_names)
        if one.targets is not None:
            out[-1]["targets"] = _known(one.targets[0], one.target_names)
    return out


def _named(codes, columns):
    """The values of each column of categories by its name."""
    return {
        column.name: [column.values[code] for code in some.tolist()]
        for column, some in zip(columns, codes.unbind(1), strict=True)
    }


def _known(numbers, names):
    """Numbers by name, None where one is missing."""
    return {name: None if value != value else value for name, value in zip(names, numbers.tolist(), strict=True)}
