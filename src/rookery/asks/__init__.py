"""Whatever a person has to answer before an agent goes on: kept, answered once, waited for."""
