"""Small random data sets for hypothesis: directed edges, self-loops, duplicates, isolated nodes, no nodes at all."""

from hypothesis import strategies as st

from sopool.data.pack import Graph, pack

names = st.one_of(st.integers(-3, 3), st.sampled_from(["C", "N", "O"]))
numbers = st.floats(-100, 100, width=32)


@st.composite
def graph(draw, with_labels, with_attributes, with_weights, with_edge_labels, undirected, with_more=False):
    n = draw(st.integers(0, 5))
    pairs = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=7)) if n else []
    if undirected:
        pairs = [p for a, b in pairs for p in (((a, b), (b, a)) if a != b else ((a, b),))]
    return Graph(
        num_nodes=n,
        edges=pairs,
        label=draw(st.sampled_from(["yes", "no", 3])),
        node_labels=[draw(names) for _ in range(n)] if with_labels else None,
        node_attributes=[[draw(numbers), draw(numbers)] for _ in range(n)] if with_attributes else None,
        edge_labels=[draw(names) for _ in pairs] if with_edge_labels else None,
        edge_weights=[draw(numbers) for _ in pairs] if with_weights else None,
        node_categories=_columns(draw, n) if with_more else None,
        edge_categories=_columns(draw, len(pairs)) if with_more else None,
        graph_attributes={"heat": draw(st.one_of(st.none(), numbers)), "size": n} if with_more else None,
    )


def _columns(draw, count):
    return {name: [draw(names) for _ in range(count)] for name in ("charge", "ring")}


@st.composite
def stores(draw, undirected=False, min_size=1, more=False):
    """With ``more``, some have several categories of nodes and edges, and numbers beside graphs."""
    kinds = [draw(st.booleans()) for _ in range(2)]
    edge_kinds = [False, False] if undirected else [draw(st.booleans()) for _ in range(2)]
    more = more and draw(st.booleans())
    return pack(
        draw(st.lists(graph(*kinds, *edge_kinds, undirected, more), min_size=min_size, max_size=6)), name="random"
    )


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
